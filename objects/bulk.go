package objects

import (
	"context"
	"errors"
	"iter"
)

// Locator is where an engine stores the data of an object, so that [Load] need not look up
// its id. It is opaque: a caller gets it from a [CommitRun] and passes it to Load of the same
// store. It is a hint that may be out of date; the zero Locator is unknown.
type Locator [2]uint64

// LoadRequest names the objects that a [Load] reads, by their places in a list of the
// caller. Several goroutines may call At and Give at once, each with different places.
type LoadRequest struct {
	Len int                       // places are 0 to Len-1
	At  func(i int) (ID, Locator) // the object at a place; the Locator may be zero

	// Give is called once for each place whose object exists, with the object or the error
	// that concerns it alone. The data never changes and belongs to the caller; o itself is
	// valid only during the call. An error that Give returns ends the load.
	Give func(i int, o *Object, err error) error
}

// BulkReader is a store that reads many objects at once faster than one by one. It is
// optional: [ChainRuns] and [Load] work with any [Reader], and are the functions to call.
// objects/bolt implements it: it returns the commits of one pack as a run, and reads the
// contents of a pack in one piece.
type BulkReader interface {
	// ChainRuns yields the commits that [Reader].Chain yields, without content, grouped in
	// runs: at most limit commits, when limit is over 0. An error is the last element.
	ChainRuns(ctx context.Context, tip ID, limit int) iter.Seq2[CommitRun, error]

	// Load reads the objects whose locators it can use, as the function [Load] does, and
	// returns the places of all others.
	Load(ctx context.Context, w LoadRequest) (rest []int, err error)
}

// CommitRun is a run of successive commits of a chain, newest first. The run and everything
// in it are valid until the loop goes on or ends.
type CommitRun struct {
	Objects []Object

	// Locators are those of the object that the first link of each commit names, if that is
	// its content; nil: unknown.
	Locators []Locator
}

// Locator returns the locator of the object that the first link of commit i names.
func (r *CommitRun) Locator(i int) (l Locator) {
	if i < len(r.Locators) {
		l = r.Locators[i]
	}
	return l
}

// ChainRuns yields the commits that Chain yields, without content, grouped in runs. Where r
// is no [BulkReader], and with a stop, each run has one commit.
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

// Load reads the requested objects, in any order. An object that does not exist is not given.
// No lock is held while Give is called.
func Load(ctx context.Context, r Reader, w LoadRequest) (err error) {
	var rest []int
	if b, ok := r.(BulkReader); ok {
		rest, err = b.Load(ctx, w)
	} else {
		rest = w.allIndices()
	}
	if err != nil || len(rest) == 0 {
		return err
	}
	return w.get(ctx, r, rest)
}

// allIndices lists every place.
func (w *LoadRequest) allIndices() []int {
	list := make([]int, w.Len)
	for i := range list {
		list[i] = i
	}
	return list
}

// get reads the objects of some places by their ids, each once, and gives them.
func (w *LoadRequest) get(ctx context.Context, r Reader, list []int) error {
	ids := make([]ID, 0, len(list))
	places := make(map[ID][]int, len(list))
	for _, i := range list {
		id, _ := w.At(i)
		if len(places[id]) == 0 {
			ids = append(ids, id)
		}
		places[id] = append(places[id], i)
	}
	for o, err := range r.Get(ctx, ids) {
		if err != nil && (len(places[o.ID]) == 0 || !isCorruptOrPurged(err)) {
			return err
		}
		for _, i := range places[o.ID] {
			if err := w.Give(i, &o, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ChainRuns checks, as Chain does, that the engine follows first parents.
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

// checkRun checks that the commits of a run are next, its first parent, and so on. It returns
// the first parent of the last one.
func (v *verified) checkRun(list []Object, next ID) (ID, error) {
	for i := range list {
		o := &list[i]
		if o.ID != next {
			return next, &CorruptError{ID: o.ID, Cause: errWrongPlace}
		}
		if !v.checks {
			if err := o.Check(); err != nil {
				return next, err
			}
		}
		next = o.FirstParent()
	}
	return next, nil
}

var (
	errWrongPlace   = errors.New("the store returned it in place of another object")
	errNotRequested = errors.New("the store returned it unasked")
)

// Load checks the objects of an engine that does not check them itself.
func (v *verified) Load(ctx context.Context, w LoadRequest) (rest []int, err error) {
	b, ok := v.Store.(BulkReader)
	if !ok {
		return w.allIndices(), nil
	}
	if v.checks {
		return b.Load(ctx, w)
	}
	asked := w
	asked.Give = func(i int, o *Object, err error) error {
		if id, _ := w.At(i); err == nil && o.ID != id {
			err = &CorruptError{ID: o.ID, Cause: errNotRequested}
		}
		if err == nil {
			err = o.Check()
		}
		return w.Give(i, o, err)
	}
	return b.Load(ctx, asked)
}
