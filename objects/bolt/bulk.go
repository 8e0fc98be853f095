package bolt

import (
	"context"
	"iter"

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

// Line is objects.Bulk.
func (s *store) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		w := &lining{tip: tip, left: limit, limited: limit > 0}
		if wrong := s.line(ctx, w, yield); wrong != nil { // what is wrong shows where each checksum is looked at first
			s.line(ctx, &lining{tip: wrong.tip, left: wrong.left, limited: w.limited, careful: true}, yield)
		}
	}
}

// line yields what a lining reads, and gives the run before which it ended because its
// checksum is wrong, if it did.
func (s *store) line(ctx context.Context, w *lining, yield func(objects.Run, error) bool) (wrong *begin) {
	for room, err := range inRooms(ctx, func(ctx context.Context, room *room) error {
		if w.tip.IsZero() || w.limited && w.left == 0 {
			return nil
		}
		return s.view(ctx, "read", func(l *look) error { return w.read(l, room) })
	}) {
		if err != nil {
			yield(objects.Run{}, err)
			return nil
		}
		for i, run := range room.runs {
			if from := room.from[i]; from.pack != nil && !from.pack.settle() {
				return &from
			}
			if !yield(run, nil) {
				return nil
			}
		}
	}
	return nil
}

// lining is one Line.
type lining struct {
	tip     objects.ID // of what is left; zero: nothing is
	left    int        // commits, if they are limited
	limited bool
	careful bool   // no checksum is left to be looked at later
	packs   int    // read at the last look
	few     int    // commits that lie in no pack, most at the last look
	after   uint32 // the pack read last; before it the next is looked for
	scan    scanning
	leaves  leaves
}

// read reads what some packs hold, or some commits that lie in none. It begins with
// few: many a walk ends soon.
func (w *lining) read(l *look, room *room) error {
	first := w.few == 0
	if w.few = min(max(4*w.few, fewAlone), pageObjects); first || w.after > 0 {
		w.packs = min(max(2*w.packs, 1), linePacks)
	}
	l.unsummed = room.behind && !w.careful
	if l.arena = &room.arena; w.packs > 1 {
		l.scan, l.leaves = &w.scan, &w.leaves
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
	room.add(run, begin{p, w.tip, w.left})
	w.left -= len(places)
	w.tip = p.Under(int(places[len(places)-1]))
}

// alone adds one commit.
func (w *lining) alone(o objects.Object, room *room) {
	room.run = append(room.run, o)
	room.add(objects.Run{Objects: room.run[len(room.run)-1:]}, begin{})
	w.left--
	if w.tip = (objects.ID{}); len(o.Parents) > 0 {
		w.tip = o.Parents[0]
	}
}
