package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// DamagedError says that some of what a commit says cannot be read: its words, its
// label, or where it came from. It is [objects.ErrCorrupt], also where the words are not
// there at all. A sequence that gives it gives the commit with it, without what cannot
// be read, and goes on.
type DamagedError struct {
	Commit objects.ID
	Cause  error
}

// Error names the commit and what cannot be read of it.
func (e *DamagedError) Error() string { return fmt.Sprintf("commit %s: %v", e.Commit.Short(), e.Cause) }

// Is makes the error an ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == objects.ErrCorrupt }

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }

// loadEach is commit.LoadAll, but what is damaged concerns only the commits that have
// it. The errors are those of the commits, in their places; nil: all are whole.
func (r *Repo) loadEach(ctx context.Context, commits []*commit.Commit) (damaged []error, err error) {
	if err := commit.LoadAll(ctx, r.store, commits...); !isDamage(err) {
		return nil, err
	}
	damaged = make([]error, len(commits))
	for i, c := range commits {
		err := r.loadAlone(ctx, c)
		if err != nil && !errors.As(err, new(*DamagedError)) {
			return nil, err
		}
		damaged[i] = err
	}
	return damaged, nil
}

// yieldLoaded fills in commits and yields them, and tells whether more are wanted.
func (r *Repo) yieldLoaded(ctx context.Context, commits []*commit.Commit, yield func(*commit.Commit, error) bool) bool {
	damaged, err := r.loadEach(ctx, commits)
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, c := range commits {
		if damaged != nil {
			err = damaged[i]
		}
		if !yield(c, err) {
			return false
		}
	}
	return true
}

// loadAlone fills in one commit, and as much as can be had of a damaged one.
func (r *Repo) loadAlone(ctx context.Context, c *commit.Commit) error {
	words := commit.Load(ctx, r.store, c) // LoadAll ends where it meets damage, and comes to them last
	if words != nil && !isDamage(words) {
		return words
	}
	err := commit.LoadAll(ctx, r.store, c)
	if isDamage(err) {
		return &DamagedError{Commit: c.ID, Cause: err}
	}
	return err
}

// isDamage tells whether what a commit links to cannot be read. What is not there is
// damage too: nothing takes it away while something leads to it.
func isDamage(err error) bool {
	return errors.Is(err, objects.ErrCorrupt) || errors.Is(err, objects.ErrNotFound)
}

// firstDamage is err, or else the first of more that is an error.
func firstDamage(err error, more ...error) error {
	for _, e := range more {
		if err == nil {
			err = e
		}
	}
	return err
}
