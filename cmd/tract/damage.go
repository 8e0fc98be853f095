package main

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// damageLog is what could not be read of what is listed. The rest is shown all the same,
// and the listing ends with it as its error.
type damageLog struct {
	first   error
	commits map[objects.ID]bool
}

// record takes note of damage that concerns one commit. Any other error comes back.
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

// result is how a listing ends that met damage, unless it has ended with an error.
func (d *damageLog) result(err error) error {
	if d.first == nil || err != nil && !isQuiet(err) {
		return err
	}
	if n := len(d.commits); n > 1 {
		return fmt.Errorf("%s damaged; the first: %w", count(n, "commit"), d.first)
	}
	return d.first
}

// isQuiet tells whether an error is only an answer.
func isQuiet(err error) bool {
	var f *failure
	ok := errors.As(err, &f)
	return ok && f.quiet
}
