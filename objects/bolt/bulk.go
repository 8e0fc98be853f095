package bolt

import (
	"context"
	"iter"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// linePacks is most packs whose heads are read at one look for Line, and aloneFor
// is how many commits are given before the next ones are read while these are used.
const (
	linePacks = 16
	aloneFor  = 1024
)

// Line is objects.Bulk.
func (s *store) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return pages(ctx, func(ctx context.Context) func(room *room) error {
		a := &ahead{store: s, ctx: ctx, options: objects.ChainOptions{Limit: limit}, most: linePacks, scan: new(scanning)}
		left := limit
		return func(room *room) (err error) {
			if tip.IsZero() || limit > 0 && left == 0 {
				return nil
			}
			a.arena, a.options.Limit = &room.arena, left
			run := &room.run
			run.Spots = run.Spots[:0]
			a.spots = &run.Spots
			if run.Commits, err = a.read(tip, run.Commits); err != nil {
				return err
			}
			if limit > 0 {
				run.Commits = run.Commits[:min(left, len(run.Commits))]
				left -= len(run.Commits)
			}
			tip = objects.ID{}
			if last := run.Commits[len(run.Commits)-1]; len(last.Parents) > 0 {
				tip = last.Parents[0]
			}
			return nil
		}
	})
}

// room is what one run lies in.
type room struct {
	arena arena
	run   objects.Run
	err   error
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// pages yields runs until one is empty. Once it is clear that there are many, the
// next is read while one is used.
func pages(ctx context.Context, start func(context.Context) func(*room) error) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		read, both := start(ctx), [2]*room{rooms.Get().(*room), rooms.Get().(*room)}
		fill := func(r *room) {
			r.run.Commits = r.run.Commits[:0]
			r.arena.reset()
			r.err = read(r)
		}
		given := 0
		done := make(chan struct{}, 1)
		done <- struct{}{}
		defer func() {
			cancel()
			<-done                 // nothing is read when the walk has ended
			if given <= aloneFor { // those of a long walk are large, and what comes next needs the memory
				rooms.Put(both[0])
				rooms.Put(both[1])
			}
		}()
		fill(both[0])
		for {
			<-done
			now := both[0]
			if now.err != nil {
				done <- struct{}{}
				yield(objects.Run{}, now.err)
				return
			}
			both[0], both[1] = both[1], both[0]
			given += len(now.run.Commits)
			ahead := given > aloneFor && len(now.run.Commits) > 0
			if ahead {
				go func() { fill(both[0]); done <- struct{}{} }()
			} else {
				done <- struct{}{}
			}
			if len(now.run.Commits) == 0 || !yield(now.run, nil) {
				return
			}
			if !ahead {
				fill(both[0])
			}
		}
	}
}
