package objects

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/safefile"
)

// The kinds of errors, for errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrCorrupt  = errors.New("damaged")
	ErrPurged   = errors.New("purged")
	ErrClosed   = errors.New("store is closed")
	ErrBusy     = errors.New("store is busy")
	ErrReadOnly = errors.New("store is read-only")
	ErrLimit    = errors.New("over the limit")
	ErrFormat   = errors.New("unknown store format")
	ErrUnsafe   = safefile.ErrUnsafe
)

// NotFoundError names the object that is missing. It is [ErrNotFound].
type NotFoundError struct{ ID ID }

// Error names the object.
func (e *NotFoundError) Error() string { return fmt.Sprintf("object %s: not found", e.ID.Short()) }

// Is makes the error an ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// CorruptError names the object whose bytes are wrong, or has the zero ID when
// the damage is in the store around the objects. It is [ErrCorrupt].
type CorruptError struct {
	ID    ID
	Cause error
}

// Error names the object and what is wrong with it.
func (e *CorruptError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("store is damaged: %v", e.Cause)
	}
	return fmt.Sprintf("object %s is damaged: %v", e.ID.Short(), e.Cause)
}

// Is makes the error an ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Cause }

// isCorruptOrPurged reports whether err is about one object, which is corrupt or purged. A sequence
// goes on after such an error.
func isCorruptOrPurged(err error) bool {
	var c *CorruptError
	return errors.As(err, &c) && !c.ID.IsZero() || errors.Is(err, ErrPurged)
}

// ConflictError reports that a ref is not where the caller expected.
type ConflictError struct {
	Ref  string
	Want ID // where the caller expected the ref; zero: it must not exist
	Have ID // where it is; zero: it does not exist
}

// Error names the ref and both places.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("ref %s moved: expected %s, is at %s", e.Ref, shortOrNothing(e.Want), shortOrNothing(e.Have))
}

// shortOrNothing returns the short form of an id, for an error; "nothing" for the zero id.
func shortOrNothing(id ID) string {
	if id.IsZero() {
		return "nothing"
	}
	return id.Short()
}

// DivergedError ends a chain whose Stop is no ancestor of its tip.
type DivergedError struct {
	Base ID // the last commit that both have; zero when they share none
}

// Error names the fork point.
func (e *DivergedError) Error() string { return "histories part at " + shortOrNothing(e.Base) }
