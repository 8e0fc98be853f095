package bolt

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

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

// TestRunWithAnotherCountIsDamage changes how many entries a run has according to the list of runs: it
// cannot be merged, so fsck must not call the store sound.
func TestRunWithAnotherCountIsDamage(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 100)
	mustCheckpoint(t, s)
	idle(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(buckets[metaBucket]))
		runs, err := decodeRuns(meta.Get(runsKey))
		if err != nil {
			return err
		}
		runs.List[0].Entries++
		return meta.Put(runsKey, encodeRuns(runs))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := audit(t, path, true)
	if err != nil || !slices.ContainsFunc(got.harm(), func(d objects.Damage) bool { return d.Where == "index" }) {
		t.Errorf("fsck reports %v, %v", got.harm(), err)
	}
}

// TestLocateInADamagedPack destroys what follows the ids in the head of a pack: an object of the pack is
// there, though it cannot be read, and an object whose id only begins as one of the pack is not.
func TestLocateInADamagedPack(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 100)
	mustCheckpoint(t, s)
	idle(t, s)
	var id objects.ID
	var from, to int64
	err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
		e, err := l.packPart(headsBucket, 1)
		if err != nil {
			return err
		}
		p, err := l.pack(1)
		if err != nil {
			return err
		}
		head, err := e.Value()
		if err != nil {
			return err
		}
		id = *p.ID(3)
		from, to = (e.Page().Offset+int64(e.ValueAt))+int64(parsePackHeader(head).end), (e.Page().Offset+int64(e.ValueAt))+int64(e.ValueSize)
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		b[i] = ^b[i]
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	other := id
	other[len(other)-1] ^= 1
	damaged := mustOpen(t, path, objects.Options{})
	defer damaged.Close()
	if missing, err := damaged.Missing(t.Context(), []objects.ID{id, other}); err != nil || !slices.Equal(missing, []objects.ID{other}) {
		t.Errorf("missing are %v, %v; want %s", missing, err, other.Short())
	}
	if _, err := objects.Read(t.Context(), damaged, id); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("reading an object of the damaged pack: %v", err)
	}
}
