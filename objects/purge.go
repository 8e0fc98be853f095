package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
)

// Tombstone is what is left of an object that was erased. Its id stays, so that
// every hash that covers it can still be checked.
type Tombstone struct {
	ID      ID
	Kind    Kind
	Size    int64     // bytes that went
	Time    time.Time // UTC, whole milliseconds
	Why     string    // in words, at most 1 KiB
	Remains []byte    // what is left in its place, at most 2 KiB; the room above knows what it means
}

const (
	mostWhy  = 1 << 10
	mostRest = 2 << 10
)

// Record returns the canonical record of the tombstone. Its id is not in it.
func (t Tombstone) Record() []byte {
	var e canonical.Encoder
	e.Uint(1, uint64(t.Kind))
	e.Uint(2, uint64(t.Size))
	e.Int(3, t.Time.UnixMilli())
	e.String(4, t.Why)
	e.Raw(5, t.Remains)
	return e.Bytes()
}

// ParseTombstone reads the record of the tombstone of an object.
func ParseTombstone(id ID, record []byte) (Tombstone, error) {
	t, ms := Tombstone{ID: id}, int64(0)
	d := canonical.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			t.Kind = Kind(d.Small(uint64(kindEnd)))
		case 2:
			t.Size = int64(d.Small(1 << 40))
		case 3:
			ms = d.Int()
		case 4:
			t.Why = d.String()
		case 5:
			t.Remains = bytes.Clone(d.Raw())
		}
	}
	t.Time = time.UnixMilli(ms).UTC()
	err := d.Err()
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Tombstone{ID: id}, &CorruptError{ID: id, Cause: fmt.Errorf("tombstone: %w", err)}
	}
	return t, nil
}

// check returns what of a tombstone cannot be.
func (t Tombstone) check() error {
	switch {
	case !t.Kind.Purgeable():
		return fmt.Errorf("a %s is never erased", t.Kind)
	case t.Size < 0:
		return fmt.Errorf("a size of %d", t.Size)
	case len(t.Why) > mostWhy || len(t.Remains) > mostRest:
		return fmt.Errorf("%d bytes of why and %d of rest: %w of %d and %d", len(t.Why), len(t.Remains), ErrLimit, mostWhy, mostRest)
	}
	return nil
}

// Purgeable reports whether objects of a kind hold words that may be taken away: all
// but those of which histories, their proofs and their costs are made.
func (k Kind) Purgeable() bool {
	switch k {
	case KindContent, KindList, KindChunk, KindTools, KindLabel:
		return true
	}
	return false
}

// PurgedError is given in the place of an object that was erased. It is
// [ErrPurged], and concerns that object only: a sequence goes on after it.
type PurgedError struct{ Tombstone }

// Error names the object and says when and why it went.
func (e *PurgedError) Error() string {
	text := fmt.Sprintf("object %s: erased %s", e.ID.Short(), e.Time.Format(time.DateOnly))
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Is makes the error an ErrPurged.
func (e *PurgedError) Is(target error) bool { return target == ErrPurged }

// Purge erases objects of a store, see [Maintainer]. What was worked out from them, here
// or by another process, is forgotten. progress may be nil.
func Purge(ctx context.Context, s Store, list []Tombstone, progress func(done, total int64)) (erased int, err error) {
	in, ok := As[Maintainer](s)
	if !ok {
		return 0, errors.New("erase objects: this engine keeps everything")
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
			known.Kind = KindContent // the engine knows
		}
		if err := known.check(); err != nil {
			return 0, fmt.Errorf("erase object %s: %w", t.ID.Short(), err)
		}
		t.Time = utcMillis(t.Time)
		unique = append(unique, t)
	}
	if len(unique) == 0 {
		return 0, ctx.Err()
	}
	erased, err = in.Purge(ctx, unique, progress)
	if m, ok := s.(Cacher); ok {
		m.Cache().forget()
	}
	return erased, err
}

// Complete returns the tombstone as it is laid in the place of an object that is there; an
// error when objects of its kind are never erased. It is for engines.
func (t Tombstone) Complete(o Object) (Tombstone, error) {
	if t.Kind = o.Kind; t.Size == 0 {
		t.Size = int64(len(o.Data))
	}
	if err := t.check(); err != nil {
		return t, fmt.Errorf("erase object %s: %w", o.ID.Short(), err)
	}
	return t, nil
}
