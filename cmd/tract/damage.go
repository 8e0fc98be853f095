package main

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// damageLog collects damage found while listing. The rest is listed, and the damage is the error
// of the command at its end.
type damageLog struct {
	first   error
	commits map[objects.ID]bool
}

// record collects damage of a single commit and returns any other error.
func (d *damageLog) record(err error) error {
	var one *commit.DamagedError
	ok := errors.As(err, &one)
	if !ok {
		return err
	}
	if d.first == nil {
		d.first, d.commits = err, map[objects.ID]bool{}
	}
	d.commits[one.Commit] = true
	return nil
}

// result returns the error with which a listing ends: err, or the damage.
func (d *damageLog) result(err error) error {
	if d.first == nil || err != nil && !isQuiet(err) {
		return err
	}
	if n := len(d.commits); n > 1 {
		return fmt.Errorf("%s damaged; the first: %w", count(n, "commit"), d.first)
	}
	return d.first
}

// isQuiet reports whether an error is only a negative answer.
func isQuiet(err error) bool {
	var f *failure
	ok := errors.As(err, &f)
	return ok && f.quiet
}
