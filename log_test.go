package tract_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// counted is a store that counts the contents that are read of it.
type counted struct {
	objects.Store
	contents int
}

func (c *counted) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for o, err := range c.Store.Get(ctx, ids) {
			if o.Kind == objects.KindContent {
				c.contents++
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// TestLogReadsOnlyTheRequestedCommits checks that the limit of a log determines how many commits are
// read at first, and that the caller may read more.
func TestLogReadsOnlyTheRequestedCommits(t *testing.T) {
	store := new(counted)
	objects.Register("counted", func(ctx context.Context, _ string, o objects.Options) (_ objects.Store, err error) {
		store.Store, err = objects.Open(ctx, "mem:", o)
		return store, err
	})
	repo := must(tract.Open(t.Context(), "counted:x", tract.OpenOptions{Create: true}))(t)
	const all = 150
	for n := range all {
		must(repo.Branch("main").Append(t.Context(), []content.Block{content.Text{Of: content.KindUser, Text: fmt.Sprint("word ", n)}}, tract.AppendOptions{}))(t)
	}
	tip := must(repo.Branch("main").Tip(t.Context()))(t)
	logs := map[string]iter.Seq2[*commit.Commit, error]{
		"a revision": repo.Log(t.Context(), "main", tract.LogOptions{}),
		"a tip":      repo.Log(t.Context(), "", tract.LogOptions{Tips: []objects.ID{tip}}),
	}
	for name, log := range logs {
		for _, test := range []struct{ take, read int }{{1, 16}, {16, 16}, {17, 48}, {all, all}} {
			store.contents = 0
			taken := 0
			for c, err := range log {
				if err != nil {
					t.Fatal(name, err)
				}
				if want := fmt.Sprint("word ", all-1-taken); c.Block.String() != want {
					t.Fatalf("%s: commit %d says %q, want %q", name, taken, c.Block, want)
				}
				if taken++; taken == test.take {
					break
				}
			}
			if taken != test.take || store.contents != test.read {
				t.Errorf("%s: %d of %d commits, for which %d contents were read, want %d", name, taken, test.take, store.contents, test.read)
			}
		}
	}
}
