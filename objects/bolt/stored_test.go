package bolt

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestRepeatedContentIsStoredOnce stores the same content in many checkpoints, among new contents,
// by two stores at one path that take turns: whatever runs were joined meanwhile, and
// whoever wrote them, each object lies in one place.
func TestRepeatedContentIsStoredOnce(t *testing.T) {
	one, path := fresh(t)
	two, err := objects.Open(t.Context(), path, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }()
	said := map[objects.ID]bool{}
	for round := range 24 {
		s := []objects.Store{one, two}[round/3%2]
		var put []objects.Object
		for i := range 40 { // half of them have not been there before
			o := object(fmt.Sprint("said ", 20*round+i))
			said[o.ID] = true
			put = append(put, o)
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	in := idle(t, one)
	err = in.view(t.Context(), "read", func(l *snapshot) error {
		all, err := l.runs()
		if err != nil {
			return err
		}
		entries := uint64(0)
		for _, r := range all.List {
			entries += r.Entries
		}
		if entries != uint64(len(said)) {
			t.Errorf("the index has %d entries of %d objects", entries, len(said))
		}
		for id := range said {
			if _, ok, err := l.locate(id); !ok || err != nil {
				t.Errorf("object %s is not found, %v", id.Short(), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoredChainIsStoredOnce puts a chain of commits again with more commits at its end. Only its
// first commit is looked up at once; those above a stored one are looked up as well.
func TestStoredChainIsStoredOnce(t *testing.T) {
	s, _ := fresh(t)
	var chain []objects.Object
	for i := range 12 {
		content := object(fmt.Sprint("said ", i))
		var parents []objects.ID
		if i > 0 {
			parents = []objects.ID{chain[len(chain)-1].ID}
		}
		chain = append(chain, content, objects.New(objects.KindCommit, parents, []objects.ID{content.ID}, fmt.Append(nil, i)))
	}
	for _, n := range []int{8, 16, 24} {
		if err := s.Apply(t.Context(), objects.Batch{Put: chain[:n]}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	err := idle(t, s).view(t.Context(), "read", func(l *snapshot) error {
		all, err := l.runs()
		entries := uint64(0)
		for _, r := range all.List {
			entries += r.Entries
		}
		if entries != uint64(len(chain)) {
			t.Errorf("the index has %d entries of %d objects", entries, len(chain))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
