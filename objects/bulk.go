package objects

import (
	"context"
	"errors"
	"iter"
)

// Locator is where an engine has the data of an object. Only the store that returned it can
// read it; zero: unknown. It is a hint: once the file has been replaced, it counts as zero.
type Locator struct {
	Body  uint64 // that the data is part of
	Piece uint64 // the offset and the size of the data there, 32 bits each
}

// LoadRequest lists the objects to load, by their places in some list. Its functions may be
// called by several goroutines at once, with different places.
type LoadRequest struct {
	Len int
	At  func(i int) (ID, Locator)

	// Give takes an object, or the error that concerns it alone. The data never changes
	// and is shared with nobody; o itself is valid during the call. Any error that Give
	// returns ends the load.
	Give func(i int, o *Object, err error) error
}

// BulkReader is a store that reads many objects at once. It is optional; [ChainRuns] and
// [Load] do without. objects/bolt is one: it gives the commits of a pack as a run, and
// loads the contents of a pack from its body.
type BulkReader interface {
	// ChainRuns yields what [Reader].Chain yields, without content, in runs: at most
	// limit commits, if it is over 0. Any error is the last element.
	ChainRuns(ctx context.Context, tip ID, limit int) iter.Seq2[CommitRun, error]

	// Load gives the objects that it finds at their spots, where that is faster than
	// reading them by id, and returns the places of the others.
	Load(ctx context.Context, w LoadRequest) (rest []int, err error)
}

// CommitRun is successive commits of a chain, newest first. It is valid until the next one is
// asked for or the loop ends, and so is all that it refers to.
type CommitRun struct {
	Objects []Object

	// Locators are those of what the first links of the objects refer to, if that is
	// content; nil: unknown.
	Locators []Locator
}

// Locator returns the spot of what the first link of an object refers to.
func (r *CommitRun) Locator(i int) (spot Locator) {
	if i < len(r.Locators) {
		spot = r.Locators[i]
	}
	return spot
}

// ChainRuns is that of a [BulkReader]. Of any other store, and with a stop, a run has one
// commit of what Chain yields.
func ChainRuns(ctx context.Context, r Reader, tip ID, limit int, stop ...ID) iter.Seq2[CommitRun, error] {
	if b, ok := r.(BulkReader); ok && len(stop) == 0 {
		return b.ChainRuns(ctx, tip, limit)
	}
	return func(yield func(CommitRun, error) bool) {
		for o, err := range r.Chain(ctx, tip, ChainOptions{Limit: limit, Stop: stop}) {
			if err != nil {
				yield(CommitRun{}, err)
				return
			}
			if !yield(CommitRun{Objects: []Object{o}}, nil) {
				return
			}
		}
	}
}

// Load gives each of the wanted objects that exists, in any order. No lock is held while
// one is given.
func Load(ctx context.Context, r Reader, w LoadRequest) (err error) {
	var rest []int
	if b, ok := r.(BulkReader); ok {
		rest, err = b.Load(ctx, w)
	} else {
		rest = w.all()
	}
	if err != nil || len(rest) == 0 {
		return err
	}
	return w.get(ctx, r, rest)
}

// all returns every place.
func (w *LoadRequest) all() []int {
	list := make([]int, w.Len)
	for i := range list {
		list[i] = i
	}
	return list
}

// get reads the objects of some places by their ids, each once, and gives them.
func (w *LoadRequest) get(ctx context.Context, r Reader, rest []int) error {
	ids := make([]ID, 0, len(rest))
	first := make(map[ID]int, len(rest))
	again := map[ID][]int{}
	for _, i := range rest {
		id, _ := w.At(i)
		if _, known := first[id]; known {
			again[id] = append(again[id], i)
			continue
		}
		first[id] = i
		ids = append(ids, id)
	}
	for o, err := range r.Get(ctx, ids) {
		i, asked := first[o.ID]
		if err != nil && (!asked || !ofOneObject(err)) {
			return err
		}
		if !asked {
			continue
		}
		if err := w.Give(i, &o, err); err != nil {
			return err
		}
		for _, i := range again[o.ID] {
			if err := w.Give(i, &o, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ChainRuns verifies, as Chain does, that the engine follows first parents.
func (v *verified) ChainRuns(ctx context.Context, tip ID, limit int) iter.Seq2[CommitRun, error] {
	return func(yield func(CommitRun, error) bool) {
		next := tip
		for run, err := range ChainRuns(ctx, v.Store, tip, limit) {
			if err == nil {
				next, err = v.checkRun(run.Objects, next)
			}
			if err != nil {
				yield(CommitRun{}, err)
				return
			}
			if !yield(run, nil) {
				return
			}
		}
	}
}

// checkRun checks that commits follow first parents from the commit next on. It returns
// the parent of the last.
func (v *verified) checkRun(list []Object, next ID) (ID, error) {
	for i := range list {
		o := &list[i]
		if o.ID != next {
			return next, &CorruptError{ID: o.ID, Cause: errElsewhere}
		}
		if !v.checks {
			if err := o.Check(); err != nil {
				return next, err
			}
		}
		next = ID{}
		if len(o.Parents) > 0 {
			next = o.Parents[0]
		}
	}
	return next, nil
}

var (
	errElsewhere = errors.New("the store returned it in place of another object")
	errUnasked   = errors.New("the store returned it unasked")
)

// Load verifies what an engine gives that does not verify it itself.
func (v *verified) Load(ctx context.Context, w LoadRequest) (rest []int, err error) {
	b, ok := v.Store.(BulkReader)
	if !ok {
		return w.all(), nil
	}
	if v.checks {
		return b.Load(ctx, w)
	}
	asked := w
	asked.Give = func(i int, o *Object, err error) error {
		if id, _ := w.At(i); err == nil && o.ID != id {
			err = &CorruptError{ID: o.ID, Cause: errUnasked}
		}
		if err == nil {
			err = o.Check()
		}
		return w.Give(i, o, err)
	}
	return b.Load(ctx, asked)
}
