package bolt

import (
	"context"
	"iter"

	"github.com/tract-vcs/tract/objects"
)

// linePacks is most packs whose heads are read at one look for ChainRuns, aloneFor is how
// many commits are given before the next ones are read while these are used, and
// fewAlone how many that lie in no pack are read at the first look.
const (
	linePacks = 32
	aloneFor  = 1024
	fewAlone  = 2
)

// ChainRuns is objects.BulkReader.
func (s *store) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		w := &lining{tip: tip, left: limit, limited: limit > 0}
		for room, err := range inRooms(ctx, func(ctx context.Context, room *room) error {
			if w.tip.IsZero() || w.limited && w.left == 0 {
				return nil
			}
			return s.view(ctx, "read", func(l *look) error { return w.read(l, room) })
		}) {
			if err != nil {
				yield(objects.CommitRun{}, err)
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

// lining is one ChainRuns.
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
	l.useArena(&room.arena)
	if w.packs > 1 {
		l.scan = &w.scan
	}
	for packs := 0; packs < w.packs && room.given < pageObjects*w.packs && room.alone < w.few*w.packs && !w.tip.IsZero() && !(w.limited && w.left == 0); {
		if first && room.alone > 0 && l.record(w.tip) == nil {
			break // who has compiled before goes no further than what is new
		}
		p, slot, err := l.packOf(w.tip, w.after)
		if w.after = 0; err == nil && p != nil && p.sound {
			w.after = p.n
			packs++
			w.inPack(l, p, slot, room)
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

// inPack adds the commits of the chain from a row of a pack on, as far as they are in it.
func (w *lining) inPack(l *look, p *pack, row int, room *room) {
	from := len(room.list)
	limit := 0
	if w.limited {
		limit = w.left
	}
	room.list, room.spots = p.AppendChain(room.list, room.spots, row, limit, l.number<<32|uint64(p.n), &room.arena.tables)
	w.left -= len(room.list) - from
	w.tip = firstParent(&room.list[len(room.list)-1])
	room.add(from)
}

// alone adds one commit.
func (w *lining) alone(o objects.Object, room *room) {
	room.list, room.spots = append(room.list, o), append(room.spots, objects.Locator{})
	room.alone++
	w.left--
	w.tip = firstParent(&o)
	room.add(len(room.list) - 1)
}

func firstParent(o *objects.Object) (id objects.ID) {
	if len(o.Parents) > 0 {
		id = o.Parents[0]
	}
	return id
}
