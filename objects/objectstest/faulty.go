package objectstest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// ErrFault is the error of every call that [Faulty] lets fail.
var ErrFault = errors.New("fault on purpose")

// Op is a method of objects.Store that can be told to fail.
type Op string

// The methods, in the words of a [Plan].
const (
	Get     Op = "Get"
	Missing Op = "Missing"
	Find    Op = "Find"
	Chain   Op = "Chain"
	GetRefs Op = "GetRefs"
	Refs    Op = "Refs"
	Log     Op = "Log"
	Apply   Op = "Apply"
	Update  Op = "Update"
)

// When says at which end of a call the fault is.
type When int

const (
	// Before fails the call before it does anything: f of Update is not called.
	Before When = 1 + iota
	// After lets the call do its work and then fails. A write has happened and
	// its error is objects.Unknown; a sequence ends after its first element.
	After
)

// Plan says which calls fail: by method, and by number from 1 on.
//
//	objectstest.Plan{objectstest.Apply: {2: objectstest.After}}
type Plan map[Op]map[int]When

// Faulty is store, but for the calls that plan lets fail. It counts the calls
// of each method, those from several goroutines included.
func Faulty(store objects.Store, plan Plan) objects.Store {
	return &faulty{Store: store, plan: plan, calls: map[Op]int{}}
}

type faulty struct {
	objects.Store
	plan Plan

	mu    sync.Mutex
	calls map[Op]int
}

// Unwrap returns the store that does the work; see objects.As.
func (f *faulty) Unwrap() objects.Store { return f.Store }

// call counts a call and gives the errors with which it is to begin and to end.
func (f *faulty) call(op Op) (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	n := f.calls[op]
	err := fmt.Errorf("%s, call %d: %w", op, n, ErrFault)
	switch f.plan[op][n] {
	case Before:
		return err, nil
	case After:
		return nil, err
	}
	return nil, nil
}

// sequence lets a sequence fail. Its call is counted when the loop begins.
func (f *faulty) sequence(op Op, seq iter.Seq2[objects.Object, error]) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		before, after := f.call(op)
		if before != nil {
			yield(objects.Object{}, before)
			return
		}
		for o, err := range seq {
			if !yield(o, err) {
				return
			}
			if after != nil {
				break
			}
		}
		if after != nil {
			yield(objects.Object{}, after)
		}
	}
}

func read[T any](f *faulty, op Op, do func() (T, error)) (T, error) {
	var none T
	before, after := f.call(op)
	if before != nil {
		return none, before
	}
	v, err := do()
	if err == nil && after != nil {
		return none, after
	}
	return v, err
}

func (f *faulty) write(op Op, do func() error) error {
	before, after := f.call(op)
	if before != nil {
		return before
	}
	err := do()
	if err == nil && after != nil {
		return objects.Unknown(after)
	}
	return err
}

func (f *faulty) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return f.sequence(Get, f.Store.Get(ctx, ids))
}

func (f *faulty) Missing(ctx context.Context, ids []objects.ID) ([]objects.ID, error) {
	return read(f, Missing, func() ([]objects.ID, error) { return f.Store.Missing(ctx, ids) })
}

func (f *faulty) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) ([]objects.ID, error) {
	return read(f, Find, func() ([]objects.ID, error) { return f.Store.Find(ctx, kind, prefix, limit) })
}

func (f *faulty) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return f.sequence(Chain, f.Store.Chain(ctx, tip, o))
}

func (f *faulty) GetRefs(ctx context.Context, names ...string) ([]objects.Ref, error) {
	return read(f, GetRefs, func() ([]objects.Ref, error) { return f.Store.GetRefs(ctx, names...) })
}

func (f *faulty) Refs(ctx context.Context, q objects.RefQuery) ([]objects.Ref, error) {
	return read(f, Refs, func() ([]objects.Ref, error) { return f.Store.Refs(ctx, q) })
}

func (f *faulty) Log(ctx context.Context, name string, before uint64, limit int) ([]objects.LogEntry, error) {
	return read(f, Log, func() ([]objects.LogEntry, error) { return f.Store.Log(ctx, name, before, limit) })
}

func (f *faulty) Apply(ctx context.Context, b objects.Batch) error {
	return f.write(Apply, func() error { return f.Store.Apply(ctx, b) })
}

func (f *faulty) Update(ctx context.Context, ref string, fn func(tip objects.ID) (objects.Batch, error)) error {
	return f.write(Update, func() error { return f.Store.Update(ctx, ref, fn) })
}
