package bolt

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestUpdatesOfTwoRefsWorkAtOnce lets two functions wait for one another: neither
// stands in the way of the other.
func TestUpdatesOfTwoRefsWorkAtOnce(t *testing.T) {
	s, _ := fresh(t)
	var both, wg sync.WaitGroup
	both.Add(2)
	for _, ref := range []string{"refs/heads/a", "refs/heads/b"} {
		wg.Go(func() {
			met := false
			err := s.Update(t.Context(), ref, func(objects.ID) (objects.Batch, error) {
				if !met {
					met = true
					both.Done()
					both.Wait()
				}
				return batch(ref, ref), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestUpdateSeesThePresentRef moves a ref while the function of an update of it runs.
func TestUpdateSeesThePresentRef(t *testing.T) {
	s, _ := fresh(t)
	apply(t, s, "refs/heads/main", "first")
	var tips []objects.ID
	err := s.Update(t.Context(), "refs/heads/main", func(tip objects.ID) (objects.Batch, error) {
		if tips = append(tips, tip); len(tips) == 1 {
			other := object("between")
			move := objects.RefUpdate{Name: "refs/heads/main", Old: tip, New: other.ID}
			done := make(chan error)
			go func() {
				done <- s.Apply(t.Context(), objects.Batch{Put: []objects.Object{other}, Refs: []objects.RefUpdate{move}})
			}()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		o := object(fmt.Sprint("after ", tip))
		return objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: o.ID}}}, nil
	})
	if err != nil || len(tips) != 2 || tips[0] != object("first").ID || tips[1] != object("between").ID {
		t.Errorf("the tips were %v, %v", tips, err)
	}
}

// TestBatchesOnAFailedGroupAreRetried plans a group upon one whose write fails: nothing of
// it is written, and it is begun again.
func TestBatchesOnAFailedGroupAreRetried(t *testing.T) {
	s, path := fresh(t)
	in := idle(t, s)
	h, w := writing(t, in)
	plan := func(from, to string) *group {
		t.Helper()
		move := objects.RefUpdate{Name: "refs/heads/main", New: object(to).ID}
		if from != "" {
			move.Old = object(from).ID
		}
		g, lead, err := w.plan(objects.Batch{Put: []objects.Object{object(to)}, Refs: []objects.RefUpdate{move}}, "", objects.ID{})
		if err != nil || !lead {
			t.Fatalf("plan %s: %t, %v", to, lead, err)
		}
		return g
	}
	first := plan("", "first")
	w.mu.Lock()
	w.open, w.committing = nil, first // and while it is written:
	w.mu.Unlock()
	second := plan("first", "second")
	_ = h.journal.File.Close()
	first.err = in.commitGroup(h, first)
	w.clearCommitting(first)
	if first.err == nil {
		t.Fatal("a journal that is closed was written")
	}
	if _, _, err := w.plan(batch("refs/heads/late", "late"), "", objects.ID{}); err != nil {
		t.Errorf("a group that somebody will end takes no more: %v", err)
	}
	if w.write(second); !errors.Is(second.err, errRetry) {
		t.Errorf("what stands on it: %v", second.err)
	}
	if _, _, err := w.plan(batch("refs/heads/late", "late"), "", objects.ID{}); !errors.Is(err, errRetry) {
		t.Errorf("a handle that is broken takes more: %v", err)
	}
	h.closeFiles()
	h.lock.release()
	if n := transactions(t, path); n != 0 {
		t.Errorf("%d groups were acknowledged", n)
	}
	apply(t, s, "refs/heads/main", "first")
}

// TestSmallObjectsAreStoredOnce says the same again and again, over many checkpoints.
func TestSmallObjectsAreStoredOnce(t *testing.T) {
	s, path := fresh(t)
	for i := range 9 {
		b := batch("refs/heads/main", fmt.Sprint("new ", i))
		if i > 0 {
			b.Refs[0].Old = object(fmt.Sprint("new ", i-1)).ID
		}
		b.Put = append(b.Put, object("the same"), object("the same"))
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	all := 0
	err := idle(t, s).view(t.Context(), "read", func(l *snapshot) error {
		for e, err := range l.ascend(headsBucket, nil) {
			if err != nil {
				return err
			}
			p, err := l.pack(uint32(e.Key[3]))
			if err != nil {
				return err
			}
			all += p.Len()
		}
		return nil
	})
	if err != nil || all != 10 {
		t.Errorf("the packs hold %d objects of 10, %v", all, err)
	}
	wantSound(t, path)
}
