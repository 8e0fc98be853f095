package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// chain is a line of commits upon a tip, with contents from a number on: now and then
// one that is large, and one that was said before.
func chain(tip objects.ID, from, n int) (list []objects.Object, last objects.ID) {
	for i := range n {
		said := fmt.Sprintf("<said %d>%0600d", from+i-i%5/4, 0)
		if i%97 == 3 {
			said += strings.Repeat("long", largeSize/4)
		}
		c := object(said)
		var parents []objects.ID
		if !tip.IsZero() {
			parents = []objects.ID{tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, fmt.Append(nil, from+i))
		list, tip = append(list, c, k), k.ID
	}
	return list, tip
}

// TestLargeBatchWithStoredObjects puts a large batch of which some is there already: in
// the journal, in packs, alone, erased, packed closely, twice in the batch itself. All
// of it can be read then, and nothing is there twice.
func TestLargeBatchWithStoredObjects(t *testing.T) {
	const n = 1200
	all, tip := chain(objects.ID{}, 0, n)
	for name, before := range map[string]func(s objects.Store, some []objects.Object){
		"nothing":     func(objects.Store, []objects.Object) {},
		"the journal": func(objects.Store, []objects.Object) {},
		"packs":       func(s objects.Store, _ []objects.Object) { mustCheckpoint(t, s) },
		"a closely packed file": func(s objects.Store, _ []objects.Object) {
			mustCheckpoint(t, s)
			sweep(t, s, objects.Sweep{Before: now()})
		},
		"tombstones":           func(s objects.Store, some []objects.Object) { erase(t, s, some[0], some[6]) },
		"tombstones in a file": func(s objects.Store, some []objects.Object) { erase(t, s, some[0], some[6]); mustCheckpoint(t, s) },
	} {
		for _, copies := range []bool{false, true} {
			s, path := fresh(t)
			some, at := all[:400], all[399].ID
			if name == "nothing" {
				some, at = nil, objects.ID{}
			} else {
				for from := 0; from < len(some); from += 50 {
					if err := s.Apply(t.Context(), objects.Batch{Put: some[from : from+50]}); err != nil {
						t.Fatal(err)
					}
				}
				b := objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/main", New: at}}}
				if err := s.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			before(s, some)
			b := objects.Batch{Put: all, Copies: copies, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: at, New: tip}}}
			if err := s.Apply(t.Context(), b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Apply(t.Context(), b); err != nil {
				t.Fatalf("%s, once more: %v", name, err)
			}
			gone := 0
			for _, o := range all {
				got, err := objects.Read(t.Context(), s, o.ID)
				if copies && errors.Is(err, objects.ErrPurged) {
					gone++
				} else if err != nil || !bytes.Equal(got.Data, o.Data) {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if erased := strings.HasPrefix(name, "tombstones"); gone > 0 != (erased && copies) {
				t.Errorf("%s: %d objects are gone, copies: %v", name, gone, copies)
			}
			unique := map[objects.ID]bool{}
			for _, o := range all {
				unique[o.ID] = true
			}
			if found := wantClean(t, path); len(found.objects)+len(found.erased) != len(unique) {
				t.Errorf("%s: %d objects and %d tombstones, of %d", name, len(found.objects), len(found.erased), len(unique))
			}
			if n := countStored(t, s); n != len(unique) {
				t.Errorf("%s: %d records of %d objects", name, n, len(unique))
			}
			wantSound(t, path)
		}
	}
}

// countStored returns how many records of objects are in the file, without purged rows of packs.
func countStored(t testing.TB, s objects.Store) (n int) {
	t.Helper()
	err := inner(t, s).view(t.Context(), "count", func(l *snapshot) error {
		all, err := l.runs()
		for _, r := range all.List {
			n += int(r.Entries)
		}
		for _, bad := range l.scanFile(objectsBucket, nil, false) {
			n, err = n+1, errors.Join(err, bad)
		}
		for e, bad := range l.scanFile(headsBucket, nil, false) {
			if err = errors.Join(err, bad); err != nil {
				return err
			}
			p, err := l.pack(binary.BigEndian.Uint32(e.Key))
			if err != nil {
				return err
			}
			n -= len(p.purged) // a tombstone, or a record that was put again, stands for the row
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRefusedLargeBatch has a large batch refused: it leaves no trace, and does not delay others.
func TestRefusedLargeBatch(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "there")
	list, tip := chain(objects.ID{}, 0, 1200)
	err := s.Apply(t.Context(), objects.Batch{Put: list, Refs: []objects.RefUpdate{{Name: "refs/heads/main", New: tip}}})
	if conflict := (*objects.ConflictError)(nil); !errors.As(err, &conflict) {
		t.Errorf("a ref that is elsewhere: %v", err)
	}
	if missing, err := s.Missing(t.Context(), []objects.ID{list[0].ID, tip}); err != nil || len(missing) != 2 {
		t.Errorf("%d objects are missing, %v", len(missing), err)
	}
	list[7].Data = []byte("other bytes")
	err = s.Apply(t.Context(), objects.Batch{Put: list})
	if corrupt := (*objects.CorruptError)(nil); !errors.As(err, &corrupt) {
		t.Errorf("an object that is not what its id says: %v", err)
	}
	apply(t, s, "refs/heads/after", "after")
	wantClean(t, path)
}

// TestLargeBatchesAmongOthers: whoever waits with them is served as before, in the same
// transaction or the next.
func TestLargeBatchesAmongOthers(t *testing.T) {
	s, path := fresh(t)
	const each = 5
	var mu sync.Mutex
	want := map[objects.ID]bool{}
	gather(t, s, path, 3*each, func(i int) {
		list, tip := chain(objects.ID{}, 10_000*i, 1+999*(i%3/2))
		err := s.Apply(t.Context(), objects.Batch{Put: list, Refs: []objects.RefUpdate{{Name: fmt.Sprint("refs/heads/", i), New: tip}}})
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, o := range list {
			want[o.ID] = true
		}
	})
	for id := range want {
		if _, err := objects.Read(t.Context(), s, id); err != nil {
			t.Fatal(err)
		}
	}
	wantClean(t, path)
	wantSound(t, path)
}

// TestUpdatesAfterALargeBatch holds that an update which follows a large batch finds the objects of
// that batch, although they are not in the journal.
func TestUpdatesAfterALargeBatch(t *testing.T) {
	s, path := fresh(t)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for k := range 6 {
				err := s.Update(t.Context(), "refs/heads/main", func(tip objects.ID) (objects.Batch, error) {
					if !tip.IsZero() {
						if _, err := objects.Read(t.Context(), s, tip); err != nil {
							return objects.Batch{}, fmt.Errorf("the tip: %w", err)
						}
					}
					list, next := chain(tip, 10_000*i+1000*k, 1+999*((i+k)%3/2))
					return objects.Batch{Put: list, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: next}}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if ref, err := objects.ReadRef(t.Context(), s, "refs/heads/main"); err != nil || ref.Version != 36 {
		t.Errorf("main has moved %d times, %v", ref.Version, err)
	}
	wantClean(t, path)
	wantSound(t, path)
}
