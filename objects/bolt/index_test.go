package bolt

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
)

// TestIndexRunsAreMerged makes many checkpoints, and finds every object in the few runs that remain.
func TestIndexRunsAreMerged(t *testing.T) {
	s, path := fresh(t)
	var ids []objects.ID
	for i := range 70 {
		o := object(fmt.Sprint("object ", i))
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.ID)
		mustCheckpoint(t, s)
	}
	in := idle(t, s)
	err := in.view(t.Context(), "read", func(l *snapshot) error {
		all, err := l.runs()
		if err != nil {
			return err
		}
		entries, levels := uint64(0), map[uint64]int{}
		for _, r := range all.List {
			entries += r.Entries
			levels[r.Level]++
		}
		if entries != uint64(len(ids)) || all.Last != uint64(len(ids)) || len(levels) != 3 {
			t.Errorf("%d entries in runs %+v", entries, all)
		}
		for level, n := range levels {
			if n >= index.Fan {
				t.Errorf("%d runs of level %d", n, level)
			}
		}
		for _, id := range ids {
			if _, ok, err := l.locate(id); !ok || err != nil {
				t.Errorf("object %s is not found, %v", id.Short(), err)
			}
		}
		_, ok, err := l.locate(objects.ID{0xff})
		if ok {
			t.Error("an object is found that is not there")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Find(t.Context(), objects.KindContent, "", 7)
	slices.SortFunc(ids, objects.ID.Compare)
	if err != nil || !slices.Equal(found, ids[:7]) {
		t.Errorf("found %v, %v; want %v", found, err, ids[:7])
	}
	if found, err = s.Find(t.Context(), 0, "", 5); err != nil || !slices.Equal(found, ids[:5]) {
		t.Errorf("found %v, %v; want %v", found, err, ids[:5])
	}
	wantSound(t, path)
}

// TestRunsAreInTheOrderOfTheirPacks makes checkpoints of different sizes: the runs of the small ones
// are never merged across that of a large one, so that the last run has the newest packs.
func TestRunsAreInTheOrderOfTheirPacks(t *testing.T) {
	s, path := fresh(t)
	n := 0
	for _, size := range []int{10, 5000, 10, 10, 10, 10, 5000, 10, 10, 10} {
		var list []objects.Object
		for range size {
			n++
			list = append(list, object(fmt.Sprint("object ", n)))
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: list}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
		if err := idle(t, s).view(t.Context(), "read", func(l *snapshot) error { return checkOrderOfRuns(t, l) }); err != nil {
			t.Fatal(err)
		}
	}
	wantSound(t, path)
}

// checkOrderOfRuns checks that every run has newer packs than the runs before it.
func checkOrderOfRuns(t *testing.T, l *snapshot) error {
	t.Helper()
	all, err := l.runs()
	if err != nil {
		return err
	}
	var newest uint32
	for _, r := range all.List {
		entries, _, err := l.readRun(r)
		if err != nil {
			return err
		}
		last := newest
		for _, e := range entries {
			pack := placeOf(e).pack
			if pack <= newest {
				t.Fatalf("runs %+v: run %d has pack %d, and one before it %d", all.List, r.Number, pack, newest)
			}
			last = max(last, pack)
		}
		newest = last
	}
	return nil
}
