package bolt

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestWhatIsSaidAgainIsLaidDownOnce folds the same words again and again among new ones,
// by two stores at one path that take turns: whatever runs were joined meanwhile, and
// whoever wrote them, each object lies in one place.
func TestWhatIsSaidAgainIsLaidDownOnce(t *testing.T) {
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
		fold(t, s)
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
