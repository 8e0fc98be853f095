package bolt

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// put writes one batch as the first of a group does.
func put(t *testing.T, w *writer, ref, text string) {
	t.Helper()
	g, lead, err := w.plan(batch(ref, text), "", objects.ID{})
	if err != nil || !lead {
		t.Fatalf("plan %s: %t, %v", ref, lead, err)
	}
	if w.write(g); g.err != nil {
		t.Fatal(g.err)
	}
}

// TestPlannerReadsTheNewestVersionOfTheFile writes a large batch immediately after a checkpoint.
// These are two transactions: the second overwrites pages that the writer's snapshot reads, unless
// the snapshot was renewed after the first.
func TestPlannerReadsTheNewestVersionOfTheFile(t *testing.T) {
	s, _ := fresh(t)
	in := idle(t, s)
	h, w := writing(t, in)
	put(t, w, "refs/heads/a", "small")
	was := h.version.meta.Tx
	if err := in.checkpoint(h, h.mark); err != nil {
		t.Fatal(err)
	}
	b := batch("refs/heads/b", "large")
	for i := range 2 * maxFrameSize / (100 << 10) {
		b.Put = append(b.Put, object(fmt.Sprint(i, strings.Repeat("x", 100<<10))))
	}
	g, _, err := w.plan(b, "", objects.ID{})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.open, w.committing = nil, g
	w.mu.Unlock()
	if err := in.commitGroup(h, g); err != nil || h.version.meta.Tx != was+2 {
		t.Fatalf("%d transactions, %v", h.version.meta.Tx-was, err)
	}
	if w.planned.pages.Meta.Tx == was {
		t.Error("the file was written twice, and who plans still looks at what it was before")
	}
	if r, err := w.planned.ref("refs/heads/b"); err != nil || r.Target != b.Refs[0].New {
		t.Errorf("what was written is not there: %s, %v", r.Target.Short(), err)
	}
	w.clearCommitting(g)
	h.closeFiles()
	h.lock.release()
}

// TestJournalRestartsAfterCheckpoints writes from many goroutines through many checkpoints, and
// reads meanwhile: nothing is missing at any time, and the journal does not grow without limit.
func TestJournalRestartsAfterCheckpoints(t *testing.T) {
	s, path := fresh(t)
	const limit = 8 << 10
	inner(t, s).checkpointLength = limit
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			ref, tip := fmt.Sprint("refs/heads/", n), objects.ID{}
			for i := range 60 {
				err := s.Update(t.Context(), ref, func(at objects.ID) (objects.Batch, error) {
					if at != tip {
						t.Errorf("%s is at %s after %d moves, not at %s", ref, at.Short(), i, tip.Short())
					}
					o := object(fmt.Sprint(ref, " ", i))
					tip = o.ID
					return objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: ref, Old: at, New: o.ID}}}, nil
				})
				if err != nil {
					t.Error(err)
				}
				if log, err := s.Log(t.Context(), ref, 0, 0); err != nil || len(log) != i+1 {
					t.Errorf("%s has %d entries after %d moves, %v", ref, len(log), i+1, err)
				}
			}
		})
	}
	wg.Wait()
	if gen := idle(t, s).position.Generation; gen < 2 {
		t.Errorf("the journal is of generation %d after many checkpoints", gen)
	}
	if size := exactSize(t, journalPath(path)); size > journal.FirstSize { // each checkpoint frees its room
		t.Errorf("the journal has %d bytes", size)
	}
	for n := range 8 {
		for i := range 60 {
			if _, err := objects.Read(t.Context(), s, object(fmt.Sprintf("refs/heads/%d %d", n, i)).ID); err != nil {
				t.Errorf("what was put as %d of %d: %v", i, n, err)
			}
		}
	}
	idle(t, s)
	wantSound(t, path)
}

// TestCheckpointWaitsForReaders holds a snapshot during checkpoints. The second checkpoint would
// overwrite pages of the snapshot, so it waits.
func TestCheckpointWaitsForReaders(t *testing.T) {
	s, _ := fresh(t)
	tip := line(t, s, "main", 40)
	mustCheckpoint(t, s)
	in := idle(t, s)
	h, err := in.lockAndOpen(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	in.mu.Lock()
	in.openHandles++
	in.shared = h
	in.mu.Unlock()
	checkpoints := func(ref string) error {
		return in.checkpoint(h, planned(t, in, h, batch(ref, ref)).mark)
	}
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- in.view(t.Context(), "read", func(l *snapshot) error {
			close(entered)
			<-leave
			r, err := l.ref("refs/heads/main")
			if err == nil && r.Target != tip {
				err = fmt.Errorf("the branch is at %s in the midst of a look, not at %s", r.Target.Short(), tip.Short())
			}
			return err
		})
	}()
	<-entered
	if err := checkpoints("refs/heads/first"); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- checkpoints("refs/heads/second") }()
	select {
	case err := <-second:
		second <- err
		t.Error("the file was written twice while somebody looked at what was before")
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := errors.Join(<-left, <-second); err != nil {
		t.Error(err)
	}
	in.mu.Lock()
	in.shared = nil
	in.mu.Unlock()
	in.closeHandle(h)
}

func exactSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
