package commit

import (
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// DamagedError reports that a part of a commit cannot be read: its content, its label or its
// origin. It is [objects.ErrCorrupt], also where the content is missing. A sequence that
// yields it yields the commit with it, without what cannot be read, and continues.
type DamagedError struct {
	Commit objects.ID
	Cause  error
}

// Error names the commit and what cannot be read of it.
func (e *DamagedError) Error() string { return fmt.Sprintf("commit %s: %v", e.Commit.Short(), e.Cause) }

// Is makes the error an ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == objects.ErrCorrupt }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }
