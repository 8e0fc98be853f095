package objects

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
)

// Verify wraps an engine so that every object read is hashed and compared with
// its id, and every batch is checked before the engine sees it. Engines return
// their stores wrapped, by Verify or by [Trust].
func Verify(s Store) Store { return &verified{Store: s} }

// Trust is Verify for an engine that verifies the objects it returns by itself: each by
// its hash, or many at once by a checksum that it made after it had verified the hash of
// every one of them. purges returns a number that grows when another process may have
// purged objects.
func Trust(s Store, purges func() uint64) Store {
	return &verified{Store: s, checks: true, purges: purges}
}

type verified struct {
	Store
	checks bool // the engine verifies what it returns
	cache  Cache

	purges     func() uint64 // nil: no other process purges
	seenPurges atomic.Uint64 // what purges returned last
}

// Cache implements [Cacher]. The cache is emptied when the engine reports that another process
// may have purged objects.
func (v *verified) Cache() *Cache {
	if v.purges != nil {
		if n := v.purges(); v.seenPurges.Load() != n {
			v.cache.clear() // first, so that no caller gets the old values
			v.seenPurges.Store(n)
		}
	}
	return &v.cache
}

// Unwrap returns the engine; see [As].
func (v *verified) Unwrap() Store { return v.Store }

func (v *verified) Get(ctx context.Context, ids []ID) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		asked := make(map[ID]bool, len(ids))
		for _, id := range ids {
			asked[id] = true
		}
		for o, err := range v.Store.Get(ctx, ids) {
			if err == nil && !asked[o.ID] {
				err = &CorruptError{ID: o.ID, Cause: errNotRequested}
			}
			if o, err = v.check(o, err); !yield(o, err) {
				return
			}
		}
	}
}

// Chain holds the engine to the line of first parents as well: an index that
// leads elsewhere would give good bytes in the wrong place.
func (v *verified) Chain(ctx context.Context, tip ID, o ChainOptions) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		next := tip
		for obj, err := range v.Store.Chain(ctx, tip, o) {
			if err == nil && obj.ID != next {
				err = &CorruptError{ID: obj.ID, Cause: errWrongPlace}
			}
			obj, err = v.check(obj, err)
			if !yield(obj, err) || err != nil {
				return
			}
			next = obj.FirstParent()
		}
	}
}

// check lets only an object out whose bytes are those of its id.
func (v *verified) check(o Object, err error) (Object, error) {
	if err == nil && !v.checks {
		err = o.Check()
	}
	if err != nil {
		return Object{ID: o.ID}, err
	}
	return o, nil
}

func (v *verified) Find(ctx context.Context, kind Kind, prefix string, limit int) ([]ID, error) {
	for _, c := range []byte(prefix) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return nil, fmt.Errorf("object id prefix %q: %q is not a hexadecimal digit", prefix, c)
		}
	}
	return v.Store.Find(ctx, kind, prefix, limit)
}

func (v *verified) Apply(ctx context.Context, b Batch) error {
	if err := checkBatch(b); err != nil {
		return err
	}
	return v.Store.Apply(ctx, b)
}

func (v *verified) Update(ctx context.Context, ref string, f func(ID) (Batch, error)) error {
	if err := CheckRefName(ref); err != nil {
		return err
	}
	return v.Store.Update(ctx, ref, func(tip ID) (Batch, error) {
		b, err := f(tip)
		if err == nil {
			err = checkBatch(b)
		}
		return b, err
	})
}
