package inspect_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

// countingStore is a store that counts the calls of Get, and in which some objects are corrupt.
type countingStore struct {
	objects.Store
	gets    int
	corrupt map[objects.ID]bool
}

func (s *countingStore) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	s.gets++
	return func(yield func(objects.Object, error) bool) {
		for o, err := range s.Store.Get(ctx, ids) {
			if s.corrupt[o.ID] {
				o, err = objects.Object{}, &objects.CorruptError{ID: o.ID}
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// TestStartedAgentsReadsAllBranchesAtOnce checks that the sub-agents of many branches are found with
// few reads of the store, since a log looks for them, and that damaged ones are left out.
func TestStartedAgentsReadsAllBranchesAtOnce(t *testing.T) {
	ctx := t.Context()
	store := &countingStore{corrupt: map[objects.ID]bool{}}
	objects.Register("counting", func(ctx context.Context, _ string, o objects.Options) (_ objects.Store, err error) {
		store.Store, err = objects.Open(ctx, "mem:", o)
		return store, err
	})
	repo, err := tract.Open(ctx, "counting:x", tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	calls := make([]objects.ID, 40)
	done, err := repo.Import(ctx, func(yield func(tract.ImportedMessage, error) bool) {
		for n := range calls {
			calls[n][0] = byte(n + 1)
			m := tract.ImportedMessage{
				Branch: fmt.Sprintf("s/agent-%d", n), Origin: commit.Origin{Original: map[string]string{"parent_commit": calls[n].String()}},
				Parts: []tract.ImportedPart{{ID: fmt.Sprint(n), Block: content.Assistant("Done.")}},
			}
			if !yield(m, nil) {
				return
			}
		}
	}, tract.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := commit.Read(ctx, store, done[1].Tip)
	if err != nil {
		t.Fatal(err)
	}
	store.corrupt[done[0].Tip], store.corrupt[tip.OriginID] = true, true
	store.gets = 0
	agents, err := inspect.StartedAgents(ctx, repo, 1000)
	if err != nil || len(agents) != len(calls)-2 {
		t.Errorf("%d calls started agents, want %d; %v", len(agents), len(calls)-2, err)
	}
	for n, call := range calls[2:] {
		if want := []string{fmt.Sprintf("s/agent-%d", n+2)}; !slices.Equal(agents[call], want) {
			t.Errorf("call %d started %q, want %q", n+2, agents[call], want)
		}
	}
	if store.gets > 4 {
		t.Errorf("the store was read %d times", store.gets)
	}
}
