package bolt

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// manyPacks is a store with n packs of about 100 KB and a branch.
func manyPacks(t testing.TB, n int) (s objects.Store, path string) {
	t.Helper()
	s, path = fresh(t)
	var tip objects.ID
	for i := range n {
		var list []objects.Object
		for k := range 30 {
			c := object(fmt.Sprintf("words %d-%d %s", i, k, strings.Repeat("x", 3000)))
			o := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, fmt.Appendf(nil, "commit %d-%d", i, k))
			list, tip = append(list, c, o), o.ID
		}
		var old objects.ID
		if r, err := objects.ReadRef(t.Context(), s, "refs/heads/main"); err == nil {
			old = r.Target
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: list, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: old, New: tip}}}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	idle(t, s)
	return s, path
}

// TestWritersGoOnDuringMaintenance has fsck, gc and backup write to the store again and again
// while they read it, with a checkpoint each time: none begins anew, keeps a writer waiting,
// or misses what it must have. A snapshot of the pages would be overwritten by that.
func TestWritersGoOnDuringMaintenance(t *testing.T) {
	for name, run := range map[string]func(in objects.Maintainer, dir string, meanwhile func()) error{
		"fsck": func(in objects.Maintainer, _ string, meanwhile func()) error {
			begun := 0
			err := in.Audit(t.Context(), objects.Audit{
				Begin:   func(int) error { begun++; return nil },
				Objects: func([]objects.Object) error { meanwhile(); return nil },
				Damage:  func(d objects.Damage) error { return fmt.Errorf("%s: %s", d.Where, d.What) },
			})
			if begun != 1 {
				t.Errorf("fsck began %d times", begun)
			}
			return err
		},
		"gc": func(in objects.Maintainer, _ string, meanwhile func()) error {
			_, err := in.Sweep(t.Context(), objects.Sweep{Before: now(), Progress: func(_, _ int64) { meanwhile() }})
			return err
		},
		"backup": func(in objects.Maintainer, dir string, meanwhile func()) error {
			return in.Copy(t.Context(), dir, func(_, _ int64) { meanwhile() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, path := manyPacks(t, rounds(48, 48, 100))
			writer := mustOpen(t, path, objects.Options{Wait: 20 * time.Second})
			s := mustOpen(t, path, objects.Options{Wait: 20 * time.Second})
			in, _ := objects.As[objects.Maintainer](s)
			written := 0
			meanwhile := func() {
				if written == 40 {
					return
				}
				apply(t, writer, fmt.Sprint("refs/heads/new-", written), fmt.Sprint("new ", written))
				mustCheckpoint(t, writer)
				idle(t, writer)
				written++
			}
			dir := t.TempDir()
			if err := run(in, dir, meanwhile); err != nil {
				t.Fatal(err)
			}
			if written < 5 {
				t.Errorf("only %d writes came between", written)
			}
			found := wantClean(t, path)
			if want := rounds(48, 48, 100)*60 + written; len(found.objects) < want || len(found.refs) != written+1 {
				t.Errorf("%d objects of %d and %d refs", len(found.objects), want, len(found.refs))
			}
			if name == "backup" {
				copied := wantClean(t, filepath.Join(dir, fileName))
				if len(copied.refs) < 2 || len(copied.objects) < rounds(48, 48, 100)*60 {
					t.Errorf("the copy has %d objects and %d refs", len(copied.objects), len(copied.refs))
				}
			}
		})
	}
}

// TestSweepCopiesLittleUnderTheLock counts what a sweep reads while writers wait: no view is
// much larger than its limit, and under the lock it copies only what was written last.
func TestSweepCopiesLittleUnderTheLock(t *testing.T) {
	s, _ := manyPacks(t, rounds(60, 60, 600))
	c := halfSwept(t, inner(t, s))
	apply(t, s, "refs/heads/late", "late")
	idle(t, s)
	if err := c.replace(); err != nil {
		t.Fatal(err)
	}
	if most := viewBytes + 1<<20; c.src.largest > most || c.src.done < 2*int64(most) && torture() {
		t.Errorf("a view read %d bytes of %d", c.src.largest, c.src.done)
	}
	if c.copier.size == 0 || c.copier.size > 4<<10 {
		t.Errorf("%d bytes of packs were copied under the lock", c.copier.size)
	}
}

// TestFsckKeepsOneNumberOfAPack counts the memory of fsck that grows with a store.
func TestFsckKeepsOneNumberOfAPack(t *testing.T) {
	s, _ := manyPacks(t, 40)
	in := inner(t, s)
	err := in.retryOnFileSnapshot(t.Context(), "check", nil, func(h *fileSnapshot) error {
		a := newChecker(h, objects.Audit{})
		if err := a.run(); err != nil {
			return err
		}
		if len(a.index.packs) != 40 || len(a.intact) != 40 || a.harmfulCount > 0 {
			t.Errorf("fsck keeps %d tallies of 40 packs", len(a.index.packs))
		}
		if most := 4 * checkBytes; cap(a.valueArena.pieces.Buf) > most || cap(a.packArena.pieces.Buf) > most {
			t.Errorf("fsck keeps %d and %d bytes of packs", cap(a.valueArena.pieces.Buf), cap(a.packArena.pieces.Buf))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
