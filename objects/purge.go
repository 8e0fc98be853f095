package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
)

// Tombstone replaces an object that was purged. It has the id of the object, so that
// every hash that covers the id can still be checked.
type Tombstone struct {
	ID      ID
	Kind    Kind
	Size    int64     // bytes that were removed
	Time    time.Time // UTC, whole milliseconds
	Why     string    // the reason, for people; at most 1 KiB
	Remains []byte    // kept in place of the data, at most 2 KiB; its format is that of the caller of Purge
}

const (
	maxWhy     = 1 << 10
	maxRemains = 2 << 10
)

// Record returns the canonical record of the tombstone. Its id is not in it.
func (t Tombstone) Record() []byte {
	var r canonical.Record
	t.fields(&r)
	return r.Bytes()
}

// fields writes the fields of the record, or reads them.
func (t *Tombstone) fields(r *canonical.Record) {
	canonical.Number(r, 1, &t.Kind, uint64(kindEnd))
	canonical.Number(r, 2, &t.Size, 1<<40)
	r.Time(3, &t.Time)
	r.String(4, &t.Why)
	r.Raw(5, &t.Remains)
}

// ParseTombstone reads the record of the tombstone of an object.
func ParseTombstone(id ID, record []byte) (Tombstone, error) {
	t := Tombstone{ID: id}
	r := canonical.NewReader(record)
	t.fields(&r)
	err := r.Err()
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Tombstone{ID: id}, &CorruptError{ID: id, Cause: fmt.Errorf("tombstone: %w", err)}
	}
	return t, nil
}

// check returns an error for a tombstone that Purge does not make.
func (t Tombstone) check() error {
	switch {
	case !t.Kind.Purgeable():
		return fmt.Errorf("a %s is never purged", t.Kind)
	case t.Size < 0:
		return fmt.Errorf("a size of %d", t.Size)
	case len(t.Why) > maxWhy || len(t.Remains) > maxRemains:
		return fmt.Errorf("%d bytes of why and %d of rest: %w of %d and %d", len(t.Why), len(t.Remains), ErrLimit, maxWhy, maxRemains)
	}
	return nil
}

// Purgeable reports whether objects of a kind can be purged: content, its lists and chunks,
// tools, labels and bodies. Commits, manifests and origins cannot, since histories, proofs and costs
// need them.
func (k Kind) Purgeable() bool {
	switch k {
	case KindContent, KindList, KindChunk, KindTools, KindLabel, KindBody:
		return true
	}
	return false
}

// PurgedError is returned in place of a purged object. It is [ErrPurged], and concerns that
// object only: a sequence continues after it.
type PurgedError struct{ Tombstone }

// Error names the object, the date and the reason.
func (e *PurgedError) Error() string {
	text := fmt.Sprintf("object %s: purged %s", e.ID.Short(), e.Time.Format(time.DateOnly))
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Is makes the error an ErrPurged.
func (e *PurgedError) Is(target error) bool { return target == ErrPurged }

// Purge replaces objects of a store by tombstones, see [Maintainer], and empties the caches of
// the store, also in other processes. progress may be nil. purged is the number of new
// tombstones.
func Purge(ctx context.Context, s Store, list []Tombstone, progress func(done, total int64)) (purged int, err error) {
	in, ok := As[Maintainer](s)
	if !ok {
		return 0, errors.New("purge objects: this engine keeps everything")
	}
	unique := make([]Tombstone, 0, len(list))
	seen := make(map[ID]bool, len(list))
	for _, t := range list {
		if seen[t.ID] {
			continue
		}
		seen[t.ID] = true
		known := t
		if known.Kind == 0 {
			known.Kind = KindContent // the engine sets the real one
		}
		if err := known.check(); err != nil {
			return 0, fmt.Errorf("purge object %s: %w", t.ID.Short(), err)
		}
		t.Time = utcMillis(t.Time)
		unique = append(unique, t)
	}
	if len(unique) == 0 {
		return 0, ctx.Err()
	}
	purged, err = in.Purge(ctx, unique, progress)
	if m, ok := s.(Cacher); ok {
		m.Cache().clear()
	}
	return purged, err
}

// Complete returns the tombstone with the kind and the size of the object that it replaces. The
// error is for an object whose kind cannot be purged. It is for engines.
func (t Tombstone) Complete(o Object) (Tombstone, error) {
	if t.Kind = o.Kind; t.Size == 0 {
		t.Size = int64(len(o.Data))
	}
	if err := t.check(); err != nil {
		return t, fmt.Errorf("purge object %s: %w", o.ID.Short(), err)
	}
	return t, nil
}
