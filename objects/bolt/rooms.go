package bolt

import (
	"context"
	"iter"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// aheadRooms is how many rooms a long walk has: while one is used, the others are filled.
// With more than two neither side waits for every single step of the other.
const aheadRooms = 4

// room is what some runs lie in.
type room struct {
	arena arena
	list  []objects.Object
	spots []objects.Locator
	runs  []objects.CommitRun // of a line
	given int                 // objects in all
	alone int                 // of them in no pack
	err   error
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// add makes a run of the last objects of the list, from one on.
func (r *room) add(from int) {
	run := objects.CommitRun{Objects: r.list[from:], Locators: r.spots[from:]}
	r.runs, r.given = append(r.runs, run), r.given+len(run.Objects)
}

// fill fills a room anew. One that nothing was put into is the last, and so is one with
// an error.
func (r *room) fill(ctx context.Context, read func(context.Context, *room) error) {
	r.list, r.spots, r.runs, r.given, r.alone = r.list[:0], r.spots[:0], r.runs[:0], 0, 0
	r.arena.reset()
	r.err = read(ctx, r)
}

// inRooms yields rooms until one is empty. Once it is clear that there are many, the
// next are filled while one is used.
func inRooms(ctx context.Context, read func(context.Context, *room) error) iter.Seq2[*room, error] {
	return func(yield func(*room, error) bool) {
		now := rooms.Get().(*room) //nolint:forcetypeassert // it holds nothing else
		given := 0
		for given <= aloneFor {
			now.fill(ctx, read)
			if given += now.given; !now.give(yield) {
				rooms.Put(now)
				return
			}
		}
		a := startAhead(ctx, read, now)
		defer a.stop()
		for a.next().give(yield) {
		}
	}
}

// give yields a room, and tells whether there may be more.
func (r *room) give(yield func(*room, error) bool) bool {
	if r.err != nil {
		yield(nil, r.err)
		return false
	}
	return r.given > 0 && yield(r, nil)
}

// readAhead fills rooms in the order in which they are used.
type readAhead struct {
	cancel      context.CancelFunc
	free, ready chan *room // each has place for all rooms
	now         *room      // in use
}

// startAhead begins to fill rooms; one is there.
func startAhead(ctx context.Context, read func(context.Context, *room) error, one *room) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{cancel: cancel, free: make(chan *room, aheadRooms), ready: make(chan *room, aheadRooms), now: one}
	for range aheadRooms - 1 {
		a.free <- rooms.Get().(*room) //nolint:forcetypeassert // it holds nothing else
	}
	go func() {
		defer close(a.ready)
		for r := range a.free {
			r.fill(ctx, read)
			if a.ready <- r; r.err != nil || r.given == 0 {
				return
			}
		}
	}()
	return a
}

// next gives the room in use back, and takes the next. The last is not followed by
// another.
func (a *readAhead) next() *room {
	a.free <- a.now
	a.now = <-a.ready
	return a.now
}

// stop ends it: nothing is read any more when it returns.
func (a *readAhead) stop() {
	a.cancel()
	close(a.free)
	for _, list := range []chan *room{a.ready, a.free} {
		for r := range list {
			rooms.Put(r)
		}
	}
	rooms.Put(a.now)
}
