package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

func sweep(t testing.TB, s objects.Store, o objects.Sweep) objects.Swept {
	t.Helper()
	c, ok := objects.As[objects.Maintainer](s)
	if !ok {
		t.Fatal("the engine cannot be cleaned")
	}
	got, err := c.Sweep(t.Context(), o)
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	return got
}

// now is a time by which everything is old.
func now() time.Time { return time.Now().Add(time.Hour) }

func wantClean(t testing.TB, path string) audited {
	t.Helper()
	got, err := audit(t, path, false)
	if err != nil || len(got.damages) > 0 {
		t.Fatalf("the store is not sound: %v, %.600v", err, got.damages)
	}
	return got
}

func TestSweepRemovesUnreachableObjects(t *testing.T) {
	path, m := large(t, 200)
	s := mustOpen(t, path, objects.Options{})
	stray := object("nobody names me")
	strayList := objects.New(objects.KindCommit, []objects.ID{m.tip}, []objects.ID{stray.ID}, []byte("stray"))
	large := object(strings.Repeat("large ", largeSize))
	kept := object("HEAD is here and on no branch")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{stray, strayList, large, kept}}); err != nil {
		t.Fatal(err)
	}
	side := objects.New(objects.KindCommit, nil, nil, []byte("once a branch"))
	apply := func(b objects.Batch) {
		t.Helper()
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	apply(objects.Batch{Put: []objects.Object{side}, Refs: []objects.RefUpdate{{Name: "refs/heads/side", New: side.ID}}})
	apply(objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/side", Old: side.ID}}})
	before := mustRead(t, path)
	dry := sweep(t, s, objects.Sweep{Before: now(), Dry: true, Keep: []objects.ID{kept.ID}})
	if dry.Removed != 3 || dry.Kept != len(m.objects)+2 || len(dry.Examples) != 3 || !bytes.Equal(mustRead(t, path), before) {
		t.Errorf("dry: %+v", dry)
	}
	young := sweep(t, s, objects.Sweep{Before: time.Now().Add(-time.Hour), Keep: []objects.ID{kept.ID}})
	if young.Removed != 0 || young.Young != 3 {
		t.Errorf("within the time of grace: %+v", young)
	}
	got := sweep(t, s, objects.Sweep{Before: now(), Keep: []objects.ID{kept.ID}})
	if got.Removed != 3 || got.SizeAfter > got.SizeBefore+2*4096 { // it was packed before
		t.Errorf("%+v", got)
	}
	found := wantClean(t, path)
	for _, o := range []objects.Object{stray, strayList, large} {
		if _, ok := found.objects[o.ID]; ok {
			t.Errorf("object %q is still there", o.Data[:min(20, len(o.Data))])
		}
	}
	if _, ok := found.objects[side.ID]; !ok {
		t.Error("what a branch once was is gone")
	}
	if lost := m.lostIn(found); lost > 0 || len(found.refs) != len(m.refs) {
		t.Errorf("%d objects and %d refs of %d are left", len(found.objects), len(found.refs), len(m.refs))
	}
	apply(objects.Batch{Put: []objects.Object{stray}})
	if o, err := objects.Read(t.Context(), s, stray.ID); err != nil || !bytes.Equal(o.Data, stray.Data) {
		t.Errorf("what went cannot come back: %v", err)
	}
	wantNumberOfEntries(t, s, 202)
}

func wantNumberOfEntries(t testing.TB, s objects.Store, n int) {
	t.Helper()
	if entries, err := s.Log(t.Context(), "", 0, 0); err != nil || len(entries) != n {
		t.Errorf("%d log entries, %v; want %d", len(entries), err, n)
	}
}

// TestSweepWhileOthersWrite has writers put again what is about to go, and name it.
func TestSweepWhileOthersWrite(t *testing.T) {
	s, path := fresh(t)
	var strays []objects.Object
	for i := range 400 {
		strays = append(strays, object(fmt.Sprint("stray ", i, strings.Repeat("s", i*23%6000))))
	}
	if err := s.Apply(t.Context(), objects.Batch{Put: strays}); err != nil {
		t.Fatal(err)
	}
	mustCheckpoint(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	named := map[string]objects.ID{}
	for w := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := 0; ctx.Err() == nil; i++ {
				o := strays[r.IntN(len(strays))]
				k := objects.New(objects.KindCommit, nil, []objects.ID{o.ID}, []byte(fmt.Sprint(w, i)))
				name := fmt.Sprintf("refs/tags/%d-%d", w, i)
				b := objects.Batch{Put: []objects.Object{o, k}, Refs: []objects.RefUpdate{{Name: name, New: k.ID}}}
				if err := s.Apply(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				named[name] = k.ID
				mu.Unlock()
			}
		})
	}
	gone := 0
	for range 6 {
		gone += sweep(t, s, objects.Sweep{Before: now()}).Removed
	}
	cancel()
	wg.Wait()
	if gone == 0 {
		t.Error("nothing was ever swept")
	}
	found := wantClean(t, path)
	for name, id := range named {
		o, ok := found.objects[id]
		if _, there := found.objects[firstLink(o)]; !ok || !there || found.refs[name] != id {
			t.Fatalf("%s is not whole", name)
		}
	}
	t.Logf("%d strays went while %d refs were made", gone, len(named))
}

func firstLink(o objects.Object) (id objects.ID) {
	if len(o.Links) > 0 {
		id = o.Links[0]
	}
	return id
}

// roleSweep puts an object that nothing leads to into a store and cleans it: PATH.
func roleSweep(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	c, _ := objects.As[objects.Maintainer](s)
	stray := object(fmt.Sprint("stray ", os.Getpid()))
	if err := s.Apply(ctx, objects.Batch{Put: []objects.Object{stray}}); err != nil {
		return err
	}
	_, err = c.Sweep(ctx, objects.Sweep{Before: now()})
	return errors.Join(err, s.Close())
}

// TestKilledSweep kills a sweep at steps that are spread over all that it does. Each
// sweep finds what the one before it has left.
func TestKilledSweep(t *testing.T) {
	path, m := large(t, 200)
	steps := traceRole(t, path, nil, "sweep").Attempts()
	kills := min(rounds(5, 15, 300), steps)
	for i := range kills {
		if trace := traceRole(t, path, &faulttest.Fault{At: i * steps / kills}, "sweep"); trace.Code > 0 {
			t.Fatalf("the sweep: %s", trace.Output("2"))
		}
		if lost := m.lostIn(wantClean(t, path)); lost > 0 {
			t.Fatalf("killed at step %d of %d: %d objects are lost", i*steps/kills, steps, lost)
		}
	}
	s := mustOpen(t, path, objects.Options{})
	apply(t, s, "refs/heads/next", "next")
	if left := names(t, filepath.Dir(path)); len(left) != 4 {
		t.Errorf("what was interrupted left %v", left)
	}
}

func TestSweepOfADamagedStore(t *testing.T) {
	path, _ := large(t, 100)
	open := mustOpen(t, path, objects.Options{})
	mustCheckpoint(t, open) // so that nothing else has to be written
	idle(t, open)
	b := bytes.ReplaceAll(mustRead(t, path), []byte("commit 20"), []byte("commit 02"))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path, objects.Options{})
	c, _ := objects.As[objects.Maintainer](s)
	if _, err := c.Sweep(t.Context(), objects.Sweep{Before: now()}); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("a damaged store was swept: %v", err)
	}
	if !bytes.Equal(mustRead(t, path), b) {
		t.Error("it has changed")
	}
}

// TestSweepLeavesFewFreePages has gc write a small store: no large value is written twice, which would
// leave the pages of its first copy free in the new file.
func TestSweepLeavesFewFreePages(t *testing.T) {
	s, path := fresh(t)
	for i := range 300 { // more log entries than one value has
		apply(t, s, fmt.Sprint("refs/heads/", i), fmt.Sprint("content ", i))
	}
	sweep(t, s, objects.Sweep{})
	idle(t, s)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, err := readMeta(f)
	if err != nil {
		t.Fatal(err)
	}
	free, _, err := page.ReadFreelist(f, m)
	if err != nil || len(free) > 3 {
		t.Errorf("%d pages of %d are free: %v", len(free), m.HighWater, err)
	}
}
