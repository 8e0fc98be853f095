package bolt

import (
	"context"
	"iter"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// linePacks is most packs whose heads are read at one look for Line, and aloneFor
// is how many objects are given before the next ones are read while these are used.
const (
	linePacks = 16
	aloneFor  = 1024
)

// Line is objects.Bulk.
func (s *store) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[[]objects.Object, error] {
	return pages(ctx, func(ctx context.Context) func(room *room) error {
		a := &ahead{store: s, ctx: ctx, options: objects.ChainOptions{Limit: limit}, most: linePacks, scan: new(scanning)}
		left := limit
		return func(room *room) (err error) {
			if tip.IsZero() || limit > 0 && left == 0 {
				return nil
			}
			a.arena, a.options.Limit = &room.arena, left
			if room.run, err = a.read(tip, room.run); err != nil {
				return err
			}
			if limit > 0 {
				room.run = room.run[:min(left, len(room.run))]
				left -= len(room.run)
			}
			tip = objects.ID{}
			if last := room.run[len(room.run)-1]; len(last.Parents) > 0 {
				tip = last.Parents[0]
			}
			return nil
		}
	})
}

// Load is objects.Bulk.
func (s *store) Load(ctx context.Context, ids []objects.ID) iter.Seq2[[]objects.Object, error] {
	return pages(ctx, func(ctx context.Context) func(room *room) error {
		g := &getter{rest: unique(ids), most: getObjects}
		return func(room *room) error {
			for len(g.rest) > 0 && len(room.run) == 0 {
				g.page, g.arena = room.page[:0], &room.arena
				if err := s.view(ctx, "read", g.read); err != nil {
					return err
				}
				room.page = g.page
				for _, e := range g.page {
					if e.err != nil {
						return e.err
					}
					room.run = append(room.run, e.object)
				}
			}
			return nil
		}
	})
}

// room is what one run lies in.
type room struct {
	arena arena
	run   []objects.Object
	page  []found
	err   error
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// pages yields runs until one is empty. Once it is clear that there are many, the
// next is read while one is used.
func pages(ctx context.Context, start func(context.Context) func(*room) error) iter.Seq2[[]objects.Object, error] {
	return func(yield func([]objects.Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		read, both := start(ctx), [2]*room{rooms.Get().(*room), rooms.Get().(*room)}
		fill := func(r *room) {
			r.run = r.run[:0]
			r.arena.reset()
			r.err = read(r)
		}
		done := make(chan struct{}, 1)
		done <- struct{}{}
		defer func() {
			cancel()
			<-done // nothing is read when the walk has ended
			rooms.Put(both[0])
			rooms.Put(both[1])
		}()
		fill(both[0])
		for given := 0; ; {
			<-done
			now := both[0]
			if now.err != nil {
				done <- struct{}{}
				yield(nil, now.err)
				return
			}
			both[0], both[1] = both[1], both[0]
			given += len(now.run)
			ahead := given > aloneFor && len(now.run) > 0
			if ahead {
				go func() { fill(both[0]); done <- struct{}{} }()
			} else {
				done <- struct{}{}
			}
			if len(now.run) == 0 || !yield(now.run, nil) {
				return
			}
			if !ahead {
				fill(both[0])
			}
		}
	}
}
