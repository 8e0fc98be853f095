package tract

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestNothingOutlivesItsDesk: what an append worked in is used again by the next, and
// what it returned, remembered or told of stays as it was.
func TestNothingOutlivesItsDesk(t *testing.T) {
	ctx := t.Context()
	var mu sync.Mutex
	var told [][]Secret
	repo, err := Open(ctx, "mem:", Create(), MaskSecrets("all"), OnSecrets(func(found []Secret) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, found)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	const writers, turns = 4, 30
	said := func(w, n int) []string {
		words := fmt.Sprintf("writer %d, turn %d ", w, n)
		return []string{words + strings.Repeat("and more ", n%7), words + "thinks", words + "answers"}
	}
	ids := make([][]objects.ID, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			branch := repo.Branch(fmt.Sprint("b", w))
			for n := range turns {
				s := said(w, n)
				got, err := branch.Append(ctx, []content.Block{
					content.User(s[0]), content.Reasoning{Text: s[1], Format: content.FormatParsed}, content.Assistant(s[2]),
				}, Label(s[1]))
				if err != nil {
					t.Error(err)
					return
				}
				ids[w] = append(ids[w], got...)
			}
			key := "my key is sk-ant-" + "api03-" + strings.Repeat("x1", 46) + "-" + strings.Repeat("z", 6) + "AA"
			if _, err := branch.User(ctx, key); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for w := range writers {
		for i, id := range ids[w] {
			c, err := commit.Read(ctx, repo.store, id)
			if err == nil {
				err = commit.Load(ctx, repo.store, c)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := said(w, i/3)
			if c.Block.String() != s[i%3] {
				t.Errorf("writer %d: commit %d says %q, want %q", w, i, c.Block, s[i%3])
			}
			if i > 0 && c.Parent() != ids[w][i-1] {
				t.Errorf("writer %d: commit %d is upon %s, want %s", w, i, c.Parent().Short(), ids[w][i-1].Short())
			}
		}
	}
	for id, kept := range repo.headers.byID {
		c, err := commit.Read(ctx, repo.store, id)
		if err != nil {
			t.Fatal(err)
		}
		if kept.ID != id || !slices.Equal(kept.Parents, c.Parents) || kept.Depth != c.Depth || kept.Kind != c.Kind {
			t.Errorf("remembered of %s: %+v, want %+v", id.Short(), kept, c)
		}
	}
	if len(told) != writers {
		t.Fatalf("told of %d secrets, want %d", len(told), writers)
	}
	for _, found := range told {
		if len(found) != 1 || found[0].Kind != content.KindUser || !found[0].Masked {
			t.Errorf("told of %+v", found)
		}
	}
}
