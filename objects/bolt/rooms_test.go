package bolt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestRoomsAreFilledAhead goes through rooms that are filled with numbers: they come in
// order, none is filled while it is in use, and when the walk ends, early, late or with an
// error, nobody fills one any more.
func TestRoomsAreFilledAhead(t *testing.T) {
	wrong := errors.New("no more of it")
	const all = 200
	for name, want := range map[string]struct {
		rooms int   // that are yielded
		stop  int   // the one at which the walk is left; 0: none
		err   error // after the last
	}{
		"few":         {rooms: 2},
		"none":        {},
		"all":         {rooms: all},
		"left early":  {rooms: 3, stop: 3},
		"left late":   {rooms: 100, stop: 100},
		"an error":    {rooms: 150, err: wrong},
		"first wrong": {err: wrong},
	} {
		filled, at, busy := 0, 0, atomic.Int32{}
		read := func(ctx context.Context, r *room) error {
			busy.Add(1)
			defer busy.Add(-1)
			if err := ctx.Err(); err != nil {
				return err
			}
			if filled == want.rooms && want.stop == 0 {
				return want.err
			}
			filled++
			for range 100 {
				r.put(filled)
			}
			return nil
		}
		var got error
		for r, err := range inRooms(t.Context(), read) {
			if got = err; err != nil {
				break
			}
			at++
			for range 100 { // who uses it takes some time
				for i := range r.runs {
					if len(r.runs[i].Objects) != at {
						t.Fatalf("%s: room %d has %d objects in a run", name, at, len(r.runs[i].Objects))
					}
				}
			}
			if at == want.stop {
				break
			}
		}
		if at != want.rooms || !errors.Is(got, want.err) || busy.Load() != 0 {
			t.Errorf("%s: %d rooms of %d, %v, and %d are being filled", name, at, want.rooms, got, busy.Load())
		}
		if after := filled; after > at+aheadRooms {
			t.Errorf("%s: %d rooms were filled for %d", name, after, at)
		}
	}
}

// TestWhoLeavesWaitsForNothing leaves a walk while a room is being filled that takes until
// the walk is over: that read is told, and no other is begun.
func TestWhoLeavesWaitsForNothing(t *testing.T) {
	begun, waiting := atomic.Int32{}, make(chan struct{})
	read := func(ctx context.Context, r *room) error {
		if begun.Add(1) > 1 {
			select {
			case waiting <- struct{}{}:
			case <-t.Context().Done():
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Minute):
				t.Error("who fills a room is not told that the walk is over")
			}
			return ctx.Err()
		}
		r.put(aloneFor + 1)
		return nil
	}
	a := startAhead(t.Context(), read, rooms.Get().(*room)) //nolint:forcetypeassert // it holds nothing else
	if !a.next().give(func(*room, error) bool { return true }) {
		t.Fatal("there is no first room")
	}
	<-waiting
	a.stop()
	if n := begun.Load(); n != 2 {
		t.Errorf("%d reads were begun", n)
	}
}

// put adds a run of n objects.
func (r *room) put(n int) {
	r.list, r.spots = append(r.list, make([]objects.Object, n)...), append(r.spots, make([]objects.Locator, n)...)
	r.add(len(r.list) - n)
}
