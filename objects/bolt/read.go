package bolt

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// The most objects, bytes and keys that a scan reads in one snapshot. It yields them when the snapshot is closed.
const (
	viewObjects = 256
	getObjects  = 1024
	getBytes    = 1 << 20
	viewKeys    = 4096
)

// Get is objects.Reader.
func (s *store) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		g := &getter{rest: objects.Unique(ids)}
		for len(g.rest) > 0 {
			g.results = g.results[:0]
			err := s.view(ctx, "read", g.readNextObjects)
			for _, e := range g.results {
				if !yield(e.object, e.err) {
					return
				}
			}
			if err != nil {
				yield(objects.Object{}, err)
				return
			}
		}
	}
}

// getter is the state of one Get.
type getter struct {
	rest    []objects.ID
	results []readResult
}

// readResult is an object, or the error that concerns it.
type readResult struct {
	object objects.Object
	err    error
}

// located is an object and its place; pack 0: it is in no pack.
type located struct {
	place

	id objects.ID
}

// readNextObjects reads the next objects, in the order of the packs. It ends with the object with which
// they have getBytes of data.
func (g *getter) readNextObjects(l *snapshot) error {
	list := make([]located, min(len(g.rest), getObjects))
	last := place{}
	for i := range list {
		list[i].id = g.rest[i]
		if l.journalRecord(g.rest[i]) != nil {
			continue
		}
		at, ok := l.locateNear(last, g.rest[i])
		if !ok {
			var err error
			if at, ok, err = l.locate(g.rest[i]); err != nil {
				return err
			}
		}
		if ok {
			list[i].place, last = at, at
		}
	}
	slices.SortStableFunc(list, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.row, b.row))
	})
	for i := range list {
		g.rest[i] = list[i].id
	}
	size := 0
	for _, one := range list {
		if size >= getBytes {
			break
		}
		o, err := l.objectAt(one)
		switch {
		case err == nil || isDamagedOrPurged(err):
			g.results = append(g.results, readResult{o, err})
		case !errors.Is(err, objects.ErrNotFound):
			return err
		}
		g.rest, size = g.rest[1:], size+len(o.Data)
	}
	return nil
}

// nearRows is how many rows from the last object the next is looked for.
const nearRows = 12

// locateNear finds an object near another one in its pack: that is faster than the index.
func (l *snapshot) locateNear(last place, id objects.ID) (at place, ok bool) {
	if last.pack == 0 {
		return place{}, false
	}
	p, err := l.pack(last.pack)
	for i := max(last.row-nearRows, 0); err == nil && i < min(last.row+nearRows+1, p.Len()); i++ {
		if p.hasUnpurged(i, id) {
			return place{last.pack, i}, true
		}
	}
	return place{}, false
}

// objectAt reads an object at its place.
func (l *snapshot) objectAt(one located) (objects.Object, error) {
	if one.pack == 0 {
		return l.object(one.id)
	}
	p, err := l.pack(one.pack)
	if err != nil {
		return objects.Object{ID: one.id}, wrapPackError(one.id, err)
	}
	return l.readPacked(p, one.row)
}

// isDamagedOrPurged reports whether an error concerns one object only: it is damaged or was purged.
func isDamagedOrPurged(err error) bool {
	var c *objects.CorruptError
	return errors.As(err, &c) && !c.ID.IsZero() || errors.Is(err, objects.ErrPurged)
}

// Missing is objects.Reader. An object that is planned counts as missing: it may never be
// written.
func (s *store) Missing(ctx context.Context, ids []objects.ID) (missing []objects.ID, err error) {
	for page := range slices.Chunk(ids, viewKeys) {
		err = s.view(ctx, "read", func(l *snapshot) error {
			for _, id := range page {
				ok, err := l.isStoredOrPurged(id)
				if err != nil {
					return err
				}
				if !ok {
					missing = append(missing, id)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}
