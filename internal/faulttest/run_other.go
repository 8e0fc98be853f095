//go:build !linux || !amd64

package faulttest

import (
	"errors"
	"fmt"
	"os/exec"
)

// Run runs commands, one after the other, and notes what they do to the files below a
// folder, with one fault or, when that is nil, none.
func Run(string, *Fault, ...*exec.Cmd) (*Trace, error) {
	return nil, fmt.Errorf("trace a command: %w on this system", errors.ErrUnsupported)
}

// FilterCalls does nothing on this system.
func FilterCalls() {}
