package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
)

func init() { roles["erase"] = roleErase }

// TestPutAgainDuringGC puts purged objects again while a gc is writing its new file.
func TestPutAgainDuringGC(t *testing.T) {
	s, path, said := spoken(t, 30)
	erase(t, s, said[2], said[3], said[4])
	in := idle(t, s)
	part := halfSwept(t, in)
	if err := s.Apply(t.Context(), objects.Batch{Put: said[2:4]}); err != nil {
		t.Fatal(err)
	}
	idle(t, s)
	if err := part.replace(); err != nil {
		t.Fatal(err)
	}
	if found := wantClean(t, path); len(found.erased) != 1 || len(found.objects) != 59 {
		t.Errorf("%d tombstones and %d objects", len(found.erased), len(found.objects))
	}
	for _, o := range said[2:4] {
		if _, err := objects.Read(t.Context(), s, o.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestPurgeWhileOthersReadAndWrite has two handles erase at once what others read, and
// others write.
func TestPurgeWhileOthersReadAndWrite(t *testing.T) {
	const n = 60
	s, path, said := spoken(t, n)
	other := mustOpen(t, path, objects.Options{Wait: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	var around, erasers sync.WaitGroup
	around.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			b := batch(fmt.Sprint("refs/heads/new-", i), fmt.Sprint("new ", i))
			if err := s.Apply(t.Context(), b); err != nil {
				t.Error(err)
				return
			}
		}
	})
	around.Go(func() {
		var ids []objects.ID
		for _, o := range said {
			ids = append(ids, o.ID)
		}
		for ctx.Err() == nil {
			seen := 0
			for _, err := range other.Get(t.Context(), ids) {
				if err != nil && !errors.Is(err, objects.ErrPurged) {
					t.Error(err)
					return
				}
				seen++
			}
			if seen != n {
				t.Errorf("%d of %d objects or tombstones", seen, n)
				return
			}
		}
	})
	for i, h := range []objects.Store{s, other} {
		erasers.Go(func() {
			for k := i; k < 16; k += 2 {
				if _, err := objects.Purge(t.Context(), h, []objects.Tombstone{{ID: said[k].ID, Why: "test"}}, nil); err != nil && !errors.Is(err, objects.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	erasers.Wait()
	cancel()
	around.Wait()
	found := wantClean(t, path)
	for id := range found.erased {
		wantNowhere(t, path, string(bytes.SplitAfter(dataOf(said, id), []byte(">"))[0]))
	}
	if len(found.erased) < 8 {
		t.Errorf("%d tombstones", len(found.erased))
	}
}

func dataOf(list []objects.Object, id objects.ID) []byte {
	for _, o := range list {
		if o.ID == id {
			return o.Data
		}
	}
	return nil
}

// roleErase erases two contents of a store one by one, and says which: PATH.
func roleErase(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	ids, err := s.Find(ctx, objects.KindContent, "", 0)
	if err != nil {
		return err
	}
	erased := 0
	for _, id := range ids {
		if erased == 2 {
			break
		}
		if _, err := objects.Read(ctx, s, id); errors.Is(err, objects.ErrPurged) {
			continue
		}
		n, err := objects.Purge(ctx, s, []objects.Tombstone{{ID: id, Time: time.Now(), Why: "killed"}}, nil)
		if err != nil {
			return err
		}
		erased += n
		if n == 1 {
			fmt.Println(id)
		}
	}
	return s.Close()
}

// TestKilledPurge kills a process that erases at steps that are spread over all that it
// does. Each process finds what the one before it has left.
func TestKilledPurge(t *testing.T) {
	const n = 300
	s, path, said := spoken(t, n)
	at := map[objects.ID]int{}
	for i, o := range said {
		at[o.ID] = i
	}
	idle(t, s)
	steps := traceRole(t, path, nil, "erase").Attempts()
	kills := min(rounds(5, 8, 200), steps)
	acknowledged := map[objects.ID]bool{}
	for i := range kills {
		trace := traceRole(t, path, &faulttest.Fault{At: i * steps / kills}, "erase")
		if trace.Code > 0 {
			t.Fatalf("the eraser: %s", trace.Output("2"))
		}
		for line := range strings.Lines(trace.Output("1")) {
			if id, err := objects.ParseID(strings.TrimSpace(line)); err == nil {
				acknowledged[id] = true
			}
		}
		found, err := audit(t, path, false)
		if err != nil || len(found.harm()) > 0 {
			t.Fatalf("the store is not sound: %v, %.600v", err, found.damages)
		}
		for id := range acknowledged {
			if _, ok := found.erased[id]; !ok {
				t.Fatalf("%q was erased and is back", said[at[id]].Data[:12])
			}
			wantNowhere(t, path, words(at[id]))
		}
		if len(found.erased)+len(found.objects) != 2*n {
			t.Fatalf("%d objects and %d tombstones of %d", len(found.objects), len(found.erased), 2*n)
		}
	}
	last := object("last")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{last}}); err != nil {
		t.Fatal(err)
	}
	erase(t, s, last) // whoever comes next clears what was left
	if left := names(t, filepath.Dir(path)); len(left) != 4 {
		t.Errorf("what was interrupted left %v", left)
	}
	if len(acknowledged) == 0 {
		t.Errorf("%d processes have erased nothing", kills)
	}
}
