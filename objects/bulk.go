package objects

import (
	"context"
	"errors"
	"iter"
)

// Spot is where an engine has the data of an object. Only the store that gave it can read
// it; zero: it is not known. It is a help and no promise: once the file is another one, it
// is as if it were zero.
type Spot struct {
	Body  uint64 // that it lies in
	Piece uint64 // the offset and the size there, 32 bits each
}

// Wanted is objects that are asked for, by their places in some list. Its functions
// may be called by several goroutines at once, with different places.
type Wanted struct {
	Len int
	At  func(i int) (ID, Spot)

	// Give takes an object, or the error that concerns it alone. The data stays as it
	// is and is shared with nobody; o itself is good for the call. Any error that it
	// returns ends the whole.
	Give func(i int, o *Object, err error) error
}

// Bulk is a store that gives many objects at once. It is optional; [Line] and [Load]
// do without.
type Bulk interface {
	// Line yields what [Reader].Chain yields, without content, in runs: at most
	// limit commits, when it is over 0. Any error is the last element.
	Line(ctx context.Context, tip ID, limit int) iter.Seq2[Run, error]

	// Load gives the objects that it finds at their spots, where that is faster than
	// to get them by their ids, and lists the places of the others.
	Load(ctx context.Context, w Wanted) (rest []int, err error)
}

// Run is a piece of a line, newest first: some objects, or the commits with some
// places in a sheet. It is good until the next one is asked for, or the loop ends, and
// so is all that it refers to.
type Run struct {
	Objects []Object

	// Body is that of the sheet in a [Spot]; 0: none is known.
	Body uint64

	sheet  *Sheet
	places []int16
}

// SheetRun is the run of a sheet from a place on as far as the line lies in it: at most
// limit commits, when it is over 0. The places of it are put into room.
func SheetRun(s *Sheet, tip, limit int, room []int16) Run {
	if limit <= 0 {
		limit = tip + 1
	}
	places, rows := room[:0], s.rows
	for at, step := tip, 0; at >= 0 && len(places) < limit; at -= step {
		places = append(places, int16(at))
		if next := rows[at].Parent(); next != at-step { // as mostly it is not: the processor need not wait to know
			step = at - next
		}
	}
	return Run{sheet: s, places: places}
}

// Sheet is what the run lies in, and the places of its commits; nil: it has Objects.
func (r *Run) Sheet() (s *Sheet, places []int16) { return r.sheet, r.places }

// Spot is that of what the first link names of the commit with a place in the sheet,
// if that is content.
func (r *Run) Spot(place int) (spot Spot) {
	s := r.sheet
	if k := s.Link(place); k >= 0 && r.Body != 0 && s.Kind(k) == KindContent {
		spot = s.rows[k].Spot(r.Body)
	}
	return spot
}

// Len is how many commits the run has.
func (r *Run) Len() int { return len(r.Objects) + len(r.places) }

// Line is that of a [Bulk] store. Of any other, and where the walk is to stop at a
// commit, it is one by one what Chain yields.
func Line(ctx context.Context, r Reader, tip ID, limit int, stop ...ID) iter.Seq2[Run, error] {
	if b, ok := r.(Bulk); ok && len(stop) == 0 {
		return b.Line(ctx, tip, limit)
	}
	return func(yield func(Run, error) bool) {
		for o, err := range r.Chain(ctx, tip, ChainOptions{Limit: limit, Stop: stop}) {
			if err != nil {
				yield(Run{}, err)
				return
			}
			if !yield(Run{Objects: []Object{o}}, nil) {
				return
			}
		}
	}
}

// Load gives each of the wanted objects that is there, in any order. No lock is held
// while one is given.
func Load(ctx context.Context, r Reader, w Wanted) (err error) {
	var rest []int
	if b, ok := r.(Bulk); ok {
		rest, err = b.Load(ctx, w)
	} else {
		rest = w.all()
	}
	if err != nil || len(rest) == 0 {
		return err
	}
	return w.get(ctx, r, rest)
}

// all is every place.
func (w *Wanted) all() []int {
	list := make([]int, w.Len)
	for i := range list {
		list[i] = i
	}
	return list
}

// get gives the objects of some places, which are read by their ids, each once.
func (w *Wanted) get(ctx context.Context, r Reader, rest []int) error {
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
			if !yield(r.sheet.Object(int(at), &room), nil) {
				return
			}
		}
	}
}

var (
	errElsewhere = errors.New("the store gave it in the place of another")
	errUnasked   = errors.New("the store gave it unasked")
)

// Load is Bulk. An engine that does not verify is held to what was asked for.
func (v *verified) Load(ctx context.Context, w Wanted) (rest []int, err error) {
	b, ok := v.Store.(Bulk)
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
