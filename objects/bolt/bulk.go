package bolt

import (
	"context"
	"iter"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// linePacks is most packs whose heads are read at one look for Line, aloneFor is how
// many commits are given before the next ones are read while these are used, and
// fewAlone how many that lie in no pack are read at the first look.
const (
	linePacks = 32
	aloneFor  = 1024
	fewAlone  = 2
)

// wholeHeads is the size of a page with heads up to which all of them are read together.
const wholeHeads = 256 << 10

// Line is objects.Bulk.
func (s *store) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		start := func(ctx context.Context) func(*room) error {
			w := &lining{tip: tip, left: limit, limited: limit > 0}
			return func(room *room) error {
				if w.tip.IsZero() || w.limited && w.left == 0 {
					return nil
				}
				return s.view(ctx, "read", func(l *look) error { return w.read(l, room) })
			}
		}
		for room, err := range pages(ctx, start) {
			if err != nil {
				yield(objects.Run{}, err)
				return
			}
			for _, run := range room.runs {
				if !yield(run, nil) {
					return
				}
			}
		}
	}
}

// lining is one Line.
type lining struct {
	tip     objects.ID // of what is left; zero: nothing is
	left    int        // commits, if they are limited
	limited bool
	packs   int    // read at the last look
	few     int    // commits that lie in no pack, most at the last look
	after   uint32 // the pack read last; before it the next is looked for
	scan    scanning
}

// read reads what some packs hold, or some commits that lie in none. It begins with
// few: many a walk ends soon.
func (w *lining) read(l *look, room *room) error {
	first := w.few == 0
	if w.few = min(max(4*w.few, fewAlone), pageObjects); first || w.after > 0 {
		w.packs = min(max(2*w.packs, 1), linePacks)
	}
	if l.arena = &room.arena; w.packs > 1 {
		l.scan, l.atOnce = &w.scan, wholeHeads
	}
	for packs := 0; packs < w.packs && room.given < pageObjects*w.packs && len(room.run) < w.few*w.packs && !w.tip.IsZero() && !(w.limited && w.left == 0); {
		if first && len(room.run) > 0 && l.record(w.tip) == nil {
			break // who has compiled before goes no further than what is new
		}
		p, slot, err := l.packOf(w.tip, w.after)
		if w.after = 0; err == nil && p != nil && p.sound {
			w.after = p.n
			packs++
			w.sheet(l, p, slot, room)
			continue
		}
		var o objects.Object
		if err == nil && p != nil {
			w.after = p.n
			o, err = l.packed(p, slot)
		} else if err == nil {
			o, err = l.object(w.tip)
		}
		if err != nil {
			if room.given > 0 {
				return nil // if the walk comes that far, it asks again
			}
			return err
		}
		w.alone(o, room)
	}
	return nil
}

// sheet adds the line from a place in a pack on, as far as it lies in it.
func (w *lining) sheet(l *look, p *pack, slot int, room *room) {
	limit := 0
	if w.limited {
		limit = w.left
	}
	run := objects.SheetRun(p.Sheet, slot, limit, room.arena.takePlaces(slot+1))
	run.Body = l.number<<32 | uint64(p.n)
	_, places := run.Sheet()
	room.add(run)
	w.left -= len(places)
	w.tip = p.Under(int(places[len(places)-1]))
}

// alone adds one commit.
func (w *lining) alone(o objects.Object, room *room) {
	room.run = append(room.run, o)
	room.add(objects.Run{Objects: room.run[len(room.run)-1:]})
	w.left--
	if w.tip = (objects.ID{}); len(o.Parents) > 0 {
		w.tip = o.Parents[0]
	}
}

func (r *room) add(run objects.Run) { r.runs, r.given = append(r.runs, run), r.given+run.Len() }

// room is what some runs lie in.
type room struct {
	arena arena
	run   []objects.Object
	runs  []objects.Run // of a line
	given int           // objects in all
	err   error
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// pages yields rooms until one is empty. Once it is clear that there are many, the
// next is filled while one is used.
func pages(ctx context.Context, start func(context.Context) func(*room) error) iter.Seq2[*room, error] {
	return func(yield func(*room, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		read, both := start(ctx), [2]*room{rooms.Get().(*room), rooms.Get().(*room)}
		fill := func(r *room) {
			r.run, r.runs, r.given = r.run[:0], r.runs[:0], 0
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
				yield(nil, now.err)
				return
			}
			both[0], both[1] = both[1], both[0]
			given += now.given
			ahead := given > aloneFor && now.given > 0
			if ahead {
				go func() { fill(both[0]); done <- struct{}{} }()
			} else {
				done <- struct{}{}
			}
			if now.given == 0 || !yield(now, nil) {
				return
			}
			if !ahead {
				fill(both[0])
			}
		}
	}
}
