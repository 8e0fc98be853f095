package bolt

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestRestoreKeepsEntriesAsTheyAre: with their numbers, gaps between them included, and
// their links. What is written afterwards goes on behind them.
func TestRestoreKeepsEntriesAsTheyAre(t *testing.T) {
	s, path := fresh(t)
	o := object("o")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
		t.Fatal(err)
	}
	newest := map[string]objects.ID{}
	var list []objects.LogEntry
	for i := range uint64(restoreStep + 10) {
		u := objects.RefUpdate{Name: fmt.Sprint("refs/heads/", i/2%50), New: o.ID}
		if i%2 == 1 {
			u.Old, u.New = u.New, u.Old
		}
		list = append(list, linked(newest, 5+i+i/7, objects.Note{Author: "ada"}, []objects.RefUpdate{u}))
	}
	if err := inner(t, s).Restore(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		got, err := s.Log(t.Context(), "", 0, 0)
		slices.Reverse(got)
		if err != nil || !reflect.DeepEqual(got, list) {
			t.Fatalf("%d entries of %d, or others, %v", len(got), len(list), err)
		}
		for name, hash := range newest {
			if got, err := s.Log(t.Context(), name, 0, 1); err != nil || len(got) != 1 || got[0].Hash != hash {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
	}
	check()
	last := list[len(list)-1]
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: last.Refs[0].Name, New: o.ID}}}); err != nil {
		t.Fatal(err)
	}
	list = append(list, linked(newest, last.Seq+1, objects.Note{}, []objects.RefUpdate{{Name: last.Refs[0].Name, New: o.ID}}))
	got, err := s.Log(t.Context(), "", 0, 1)
	if err != nil || got[0].Seq != last.Seq+1 || got[0].Refs[0].Prev != last.Hash {
		t.Fatalf("%+v, %v; want entry %d", got, err, last.Seq+1)
	}
	list[len(list)-1] = got[0] // the time is another
	newest[last.Refs[0].Name] = got[0].Hash
	mustCheckpoint(t, s)
	check()
	sweep(t, s, objects.Sweep{})
	check()
	wantClean(t, path)
}

func TestRestoreRefusesWhatDoesNotFollow(t *testing.T) {
	a, b := object("a"), object("b")
	newest := map[string]objects.ID{}
	move := func(seq uint64, u objects.RefUpdate) objects.LogEntry {
		return linked(newest, seq, objects.Note{}, []objects.RefUpdate{u})
	}
	first := move(3, objects.RefUpdate{Name: "refs/heads/x", New: a.ID})
	right := move(4, objects.RefUpdate{Name: "refs/heads/x", Old: a.ID, New: b.ID})
	for name, e := range map[string]objects.LogEntry{
		"an earlier number": objects.NewLogEntry(2, right.Note, right.Refs),
		"the same number":   objects.NewLogEntry(3, right.Note, right.Refs),
		"no link":           objects.NewLogEntry(4, right.Note, []objects.RefUpdate{{Name: "refs/heads/x", Old: a.ID, New: b.ID}}),
		"a wrong link":      objects.NewLogEntry(4, right.Note, []objects.RefUpdate{{Name: "refs/heads/x", Old: a.ID, New: b.ID, Prev: a.ID}}),
		"from elsewhere":    objects.NewLogEntry(4, right.Note, []objects.RefUpdate{{Name: "refs/heads/x", Old: b.ID, New: object("c").ID, Prev: first.Hash}}),
		"no move":           objects.NewLogEntry(4, right.Note, []objects.RefUpdate{{Name: "refs/heads/x", Old: a.ID, New: a.ID, Prev: first.Hash}}),
	} {
		s, path := fresh(t)
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{a, b}}); err != nil {
			t.Fatal(err)
		}
		err := inner(t, s).Restore(t.Context(), []objects.LogEntry{first, e})
		if !errors.Is(err, objects.ErrCorrupt) && !errors.As(err, new(*objects.ConflictError)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := inner(t, s).Restore(t.Context(), []objects.LogEntry{right}); err != nil {
			t.Errorf("%s, and then the right one: %v", name, err)
		}
		wantClean(t, path)
	}
}
