package bolt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
)

// TestManyConcurrentWriters has many goroutines write, each on what it wrote before, with many checkpoints
// in between: all is there, in the store and in what another process reads.
func TestManyConcurrentWriters(t *testing.T) {
	s, path := fresh(t)
	in := idle(t, s)
	in.checkpointLength = 16 << 10
	const writers, each = 48, 12
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			ref, tip := fmt.Sprint("refs/heads/", n%(writers-8)), objects.ID{} // some share one
			for i := range each {
				err := s.Update(t.Context(), ref, func(at objects.ID) (objects.Batch, error) {
					tip = object(fmt.Sprint(n, " ", i)).ID
					return objects.Batch{
						Put:  []objects.Object{object(fmt.Sprint(n, " ", i))},
						Refs: []objects.RefUpdate{{Name: ref, Old: at, New: tip}},
					}, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := objects.Read(t.Context(), s, tip); err != nil {
					t.Errorf("what was acknowledged: %v", err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := mustOpen(t, path, objects.Options{})
	for n := range writers {
		for i := range each {
			if _, err := objects.Read(t.Context(), other, object(fmt.Sprint(n, " ", i)).ID); err != nil {
				t.Errorf("%d of writer %d: %v", i, n, err)
			}
		}
	}
	log, err := other.Log(t.Context(), "", 0, 0)
	if err != nil || len(log) != writers*each {
		t.Errorf("the log has %d entries of %d, %v", len(log), writers*each, err)
	}
	wantSound(t, path)
}

// roleCrowd goes on with a store after roleCrash as several goroutines do: PATH.
func roleCrowd(args []string) error {
	w := &crashWork{ctx: context.Background()}
	if w.open(args[0]); w.store == nil {
		return w.err
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for k := range 3 {
				w.next(fmt.Sprint("refs/heads/crowd", i), k*50)
			}
		})
	}
	all.Wait()
	w.check(w.store.Close())
	return w.err
}

// TestPowerFailureWithManyWriters lets the power fail at any step of a crowd: what was
// acknowledged is there. One whose journal is not synced is found out, and a sync that
// fails is no acknowledgment.
func TestPowerFailureWithManyWriters(t *testing.T) {
	trace, _ := traced(t, nil, false, "crowd")
	if trace.Code != 0 {
		t.Fatal(trace.Output("2"))
	}
	from := trace.Starts[1]
	journal := func(s *faulttest.Step) bool {
		return s.Kind == faulttest.Sync && s.Name == "s/"+fileName+"-journal"
	}
	tried := crashes{from: from, random: rounds(0, 1, 20), most: rounds(40, 200, 0)}.mustSurvive(t, "", trace)
	if _, wrong := (crashes{from: from, most: 400}).try(t, without(trace, journal)); len(wrong) == 0 {
		t.Error("nobody misses the syncs of the journal")
	}
	before := *trace
	before.Steps = trace.Steps[:from]
	failed := 0
	for _, s := range attempts(trace) {
		at := s.Attempt
		if at < before.Attempts() || !journal(&s) || failed == rounds(2, 4, 20) {
			continue
		}
		fault := faulttest.Fault{At: at, Errno: syscall.EIO}
		trace, root := traced(t, &fault, false, "crowd")
		if trace.Code != 0 {
			t.Fatalf("sync at attempt %d: %s", at, trace.Output("2"))
		}
		numbers, gone := acknowledged(t, trace, len(trace.Steps))
		if err := survives(t.Context(), root, numbers, gone); err != nil {
			t.Errorf("sync at attempt %d: %v", at, err)
		}
		failed++
	}
	t.Logf("%d steps, %d states, %d syncs that failed", len(trace.Steps)-from, tried, failed)
	if failed == 0 {
		t.Error("no sync failed")
	}
}

// TestRefsByTimeAcrossCheckpoints moves refs and takes them away, some within one millisecond
// and some back in time, with checkpoints in between: each is in the order of time once.
func TestRefsByTimeAcrossCheckpoints(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	s, path := fresh(t)
	at := map[string]objects.Ref{}
	for i := range 400 {
		name := fmt.Sprint("refs/heads/", random.IntN(4))
		move := objects.RefUpdate{Name: name, Old: at[name].Target}
		b := objects.Batch{Note: objects.Note{Time: time.UnixMilli(int64(1000 + random.IntN(5))).UTC()}}
		if move.Old.IsZero() || random.IntN(4) > 0 {
			b.Put = []objects.Object{object(fmt.Sprint(i))}
			move.New = b.Put[0].ID
		}
		b.Refs = []objects.RefUpdate{move}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		at[name] = objects.Ref{Name: name, Target: move.New, Updated: b.Note.Time}
		if random.IntN(20) > 0 {
			continue
		}
		mustCheckpoint(t, s)
		list, err := s.Refs(t.Context(), objects.RefQuery{Newest: true})
		if err != nil {
			t.Fatalf("seed %d, after %d: %v", seed, i, err)
		}
		for _, r := range list {
			if have := at[r.Name]; have.Target != r.Target || !have.Updated.Equal(r.Updated) {
				t.Errorf("seed %d, after %d: %s is %v of %v, and was moved to %v at %v", seed, i, r.Name, r.Target, r.Updated, have.Target, have.Updated)
			}
		}
		here := 0
		for _, r := range at {
			if !r.Target.IsZero() {
				here++
			}
		}
		if here != len(list) {
			t.Errorf("seed %d, after %d: %d refs by time of %d", seed, i, len(list), here)
		}
	}
	wantSound(t, path)
}
