package main

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// damageLog collects the damage found while listing. The list continues, and the command ends with
// the damage as its error.
type damageLog struct {
	first   error
	commits map[objects.ID]bool
}

// collectDamage collects damage of a single commit and returns any other error.
func (d *damageLog) collectDamage(err error) error {
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

// finalError returns the error with which a listing ends: err, or the damage.
func (d *damageLog) finalError(err error) error {
	if d.first == nil || err != nil && !isNegativeAnswer(err) {
		return err
	}
	if n := len(d.commits); n > 1 {
		return fmt.Errorf("%s damaged; the first: %w", count(n, "commit"), d.first)
	}
	return d.first
}

// isNegativeAnswer reports whether an error is only a negative answer: an exit code without a
// message.
func isNegativeAnswer(err error) bool {
	var f *failure
	ok := errors.As(err, &f)
	return ok && f.quiet
}
