package bolt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestBatchesAreReadAhead goes through batches that are filled with numbers: they come in
// order, none is filled while it is in use, and when the walk ends, early, late or with an
// error, nobody fills one any more.
func TestBatchesAreReadAhead(t *testing.T) {
	wrong := errors.New("no more of it")
	const all = 200
	for name, want := range map[string]struct {
		batches int   // that are yielded
		stop    int   // the one at which the walk is left; 0: none
		err     error // after the last
	}{
		"few":         {batches: 2},
		"none":        {},
		"all":         {batches: all},
		"left early":  {batches: 3, stop: 3},
		"left late":   {batches: 100, stop: 100},
		"an error":    {batches: 150, err: wrong},
		"first wrong": {err: wrong},
	} {
		filled, at, busy := 0, 0, atomic.Int32{}
		read := func(ctx context.Context, b *chainBatch) error {
			busy.Add(1)
			defer busy.Add(-1)
			if err := ctx.Err(); err != nil {
				return err
			}
			if filled == want.batches && want.stop == 0 {
				return want.err
			}
			filled++
			for range 100 {
				b.add(filled)
			}
			return nil
		}
		var got error
		for b, err := range readAhead(t.Context(), read) {
			if got = err; err != nil {
				break
			}
			at++
			for range 100 { // who uses it takes some time
				for i := range b.runs {
					if len(b.runs[i].Objects) != at {
						t.Fatalf("%s: batch %d has %d objects in a run", name, at, len(b.runs[i].Objects))
					}
				}
			}
			if at == want.stop {
				break
			}
		}
		if at != want.batches || !errors.Is(got, want.err) || busy.Load() != 0 {
			t.Errorf("%s: %d batches of %d, %v, and %d are being filled", name, at, want.batches, got, busy.Load())
		}
		if after := filled; after > at+aheadCount {
			t.Errorf("%s: %d batches were filled for %d", name, after, at)
		}
	}
}

// TestLeavingAWalkStopsReading leaves a walk while a batch is being read that takes until
// the walk is over: that read is cancelled, and no other is begun.
func TestLeavingAWalkStopsReading(t *testing.T) {
	begun, waiting := atomic.Int32{}, make(chan struct{})
	read := func(ctx context.Context, b *chainBatch) error {
		if begun.Add(1) > 1 {
			close(waiting)
			<-ctx.Done() // or the test does not end
			return ctx.Err()
		}
		b.add(aheadFrom + 1)
		return nil
	}
	readConcurrently(t.Context(), read, func(*chainBatch, error) bool {
		<-waiting
		return false
	})
	if n := begun.Load(); n != 2 {
		t.Errorf("%d reads were begun", n)
	}
}

// add adds a run of n objects.
func (b *chainBatch) add(n int) {
	b.list, b.locators = append(b.list, make([]objects.Object, n)...), append(b.locators, make([]objects.Locator, n)...)
	b.addRun(len(b.list) - n)
}
