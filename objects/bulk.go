package objects

import (
	"context"
	"errors"
	"iter"
)

// Bulk is a store that gives many objects at once, in memory that it uses again:
// the objects of a run, and all that they refer to, are good until the next run is
// asked for, or the loop ends. It is optional; [Line] and [Load] do without.
type Bulk interface {
	// Line yields what [Reader].Chain yields, without content, in runs: at most
	// limit commits, when it is over 0.
	Line(ctx context.Context, tip ID, limit int) iter.Seq2[[]Object, error]

	// Load yields what [Reader].Get yields, in runs, and in the order in which it
	// was asked for. Any error is the last element.
	Load(ctx context.Context, ids []ID) iter.Seq2[[]Object, error]
}

// Line is that of a [Bulk] store. Of any other, and where the walk is to stop at a
// commit, it is one by one what Chain yields.
func Line(ctx context.Context, r Reader, tip ID, limit int, stop ...ID) iter.Seq2[[]Object, error] {
	if b, ok := r.(Bulk); ok && len(stop) == 0 {
		return b.Line(ctx, tip, limit)
	}
	return oneByOne(r.Chain(ctx, tip, ChainOptions{Limit: limit, Stop: stop}))
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
func (v *verified) Line(ctx context.Context, tip ID, limit int) iter.Seq2[[]Object, error] {
	return func(yield func([]Object, error) bool) {
		next := tip
		for run, err := range Line(ctx, v.Store, tip, limit) {
			for i := range run {
				o := &run[i]
				if err == nil && o.ID != next {
					err = &CorruptError{ID: o.ID, Cause: errors.New("the store gave it in the place of another")}
				}
				if err == nil && !v.checks {
					err = o.Check()
				}
				if next = (ID{}); len(o.Parents) > 0 {
					next = o.Parents[0]
				}
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
