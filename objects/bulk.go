package objects

import (
	"context"
	"errors"
	"iter"
)

// Bulk is a store that gives many objects at once, in memory that it uses again:
// a run, and all that it refers to, is good until the next one is asked for, or the
// loop ends. It is optional; [Line] and [Load] do without.
type Bulk interface {
	// Line yields what [Reader].Chain yields, without content, in runs: at most
	// limit commits, when it is over 0.
	Line(ctx context.Context, tip ID, limit int) iter.Seq2[Run, error]

	// Load yields what [Reader].Get yields, in runs, and in the order in which it
	// was asked for. Any error is the last element.
	Load(ctx context.Context, ids []ID) iter.Seq2[[]Object, error]
}

// Run is a piece of a line, newest first: some objects, or the commits with some
// places in a sheet.
type Run struct {
	Objects []Object

	sheet  *Sheet
	places []int16
}

// SheetRun is the run of a sheet from a place on as far as the line lies in it: at most
// limit commits, when it is over 0. The places of it are put into room.
func SheetRun(s *Sheet, tip, limit int, room []int16) Run {
	places := room[:0]
	for at := tip; at >= 0; at = int(s.slots[at].parent) {
		if places = append(places, int16(at)); len(places) == limit {
			break
		}
	}
	return Run{sheet: s, places: places}
}

// Sheet is what the run lies in, and the places of its commits; nil: it has Objects.
func (r *Run) Sheet() (s *Sheet, places []int16) { return r.sheet, r.places }

// Len is how many commits the run has.
func (r *Run) Len() int { return len(r.Objects) + len(r.places) }

// Line is that of a [Bulk] store. Of any other, and where the walk is to stop at a
// commit, it is one by one what Chain yields.
func Line(ctx context.Context, r Reader, tip ID, limit int, stop ...ID) iter.Seq2[Run, error] {
	if b, ok := r.(Bulk); ok && len(stop) == 0 {
		return b.Line(ctx, tip, limit)
	}
	return func(yield func(Run, error) bool) {
		for one, err := range oneByOne(r.Chain(ctx, tip, ChainOptions{Limit: limit, Stop: stop})) {
			if !yield(Run{Objects: one}, err) {
				return
			}
		}
	}
}

// Load is that of a [Bulk] store, and of any other its Get, in any order.
func Load(ctx context.Context, r Reader, ids []ID) iter.Seq2[[]Object, error] {
	if b, ok := r.(Bulk); ok {
		return b.Load(ctx, ids)
	}
	return oneByOne(r.Get(ctx, ids))
}

func oneByOne(list iter.Seq2[Object, error]) iter.Seq2[[]Object, error] {
	return func(yield func([]Object, error) bool) {
		for o, err := range list {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield([]Object{o}, nil) {
				return
			}
		}
	}
}

// Line is Bulk. As in Chain the engine is held to the line of first parents.
func (v *verified) Line(ctx context.Context, tip ID, limit int) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		next := tip
		for run, err := range Line(ctx, v.Store, tip, limit) {
			if err == nil {
				next, err = v.follows(&run, next)
			}
			if err != nil {
				yield(Run{}, err)
				return
			}
			if !yield(run, nil) {
				return
			}
		}
	}
}

// follows checks that a run goes down the line from a commit, and gives the one
// behind it. Within a sheet it does.
func (v *verified) follows(run *Run, next ID) (ID, error) {
	if s := run.sheet; s != nil && v.checks {
		first, last := int(run.places[0]), int(run.places[len(run.places)-1])
		if *s.ID(first) != next {
			return next, &CorruptError{ID: *s.ID(first), Cause: errElsewhere}
		}
		return s.Under(last), nil
	}
	for o, err := range run.All() {
		if err == nil && o.ID != next {
			err = &CorruptError{ID: o.ID, Cause: errElsewhere}
		}
		if err == nil && !v.checks {
			err = o.Check()
		}
		if err != nil {
			return next, err
		}
		next = firstParent(o)
	}
	return next, nil
}

// All yields the commits of a run as objects, which are good as long as the run. An
// error is the last element.
func (r *Run) All() iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for i := range r.Objects {
			if !yield(r.Objects[i], nil) {
				return
			}
		}
		var room []ID
		for _, at := range r.places {
			o, err := r.sheet.Object(int(at), &room)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

var errElsewhere = errors.New("the store gave it in the place of another")

// Load is Bulk.
func (v *verified) Load(ctx context.Context, ids []ID) iter.Seq2[[]Object, error] {
	b, ok := v.Store.(Bulk)
	if !ok {
		return oneByOne(v.Get(ctx, ids))
	}
	return func(yield func([]Object, error) bool) {
		rest := ids
		for run, err := range b.Load(ctx, ids) {
			if err == nil {
				rest, err = v.asked(run, rest)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(run, nil) {
				return
			}
		}
	}
}

// asked checks that the objects of a run are what was asked for, in that order, and
// gives what was asked for behind them.
func (v *verified) asked(run []Object, ids []ID) (rest []ID, err error) {
	for i := range run {
		o := &run[i]
		for len(ids) > 0 && ids[0] != o.ID {
			ids = ids[1:] // it was asked for before, or is not there
		}
		if len(ids) == 0 {
			return nil, &CorruptError{ID: o.ID, Cause: errors.New("the store gave it unasked")}
		}
		if !v.checks {
			if err := o.Check(); err != nil {
				return nil, err
			}
		}
		ids = ids[1:]
	}
	return ids, nil
}
