// Package faulttest makes the system fail for a program. [Run] runs commands
// and notes, in order, whatever they do to the files of one folder; it can kill one at
// any of these steps, or let the step fail. [Crashes] makes of what was
// noted the folders that a power failure can leave behind.
//
// It follows a command with ptrace, system call by system call, and needs nothing
// but Go. Where that cannot be done, Run gives [errors.ErrUnsupported]: it is known
// for Linux on amd64, and some containers forbid it.
package faulttest

import (
	"slices"
	"syscall"
)

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Create   Kind = iota // a file gets its first name
	MakeDir              // so does a folder
	Write                // bytes are written into a file
	Truncate             // a file gets another size
	Sync                 // what was written into a file before is made durable
	SyncDir              // the names of a folder are
	Link                 // a file gets one more name
	Rename               // a name becomes another
	Remove               // a name goes
	Open                 // a file that is there is opened for writing
	Say                  // the command writes to its standard output or error
)

var kinds = [...]string{"create", "mkdir", "write", "truncate", "sync", "sync dir", "link", "rename", "remove", "open", "say"}

// String is the name of the kind.
func (k Kind) String() string { return kinds[k] }

// Step is one thing that a command did.
type Step struct {
	Kind    Kind
	File    int    // number of the file in [Trace.Files]; of SyncDir none
	Name    string // below the folder; of Rename and Link the new one, of Say "1" or "2"
	From    string // of Rename: the old name
	At      int64  // of Write: where
	Data    []byte // of Write and Say
	Size    int64  // of Truncate
	Before  int    // of Sync and SyncDir: the number of steps that were done when it began
	Failed  bool   // of Sync and SyncDir: it gave an error
	Attempt int    // its number as [Fault].At counts; 0 for Say
}

// Trace is what commands did to the files of a folder.
type Trace struct {
	Steps []Step
	Files [][]byte       // what every file held before; nil: it was not there
	Names map[string]int // which file had which name before
	Dirs  []string       // which folders there were

	Starts []int // the number of steps that were done when each command began

	Code   int  // the exit code; -1: it was killed
	Struck bool // the fault of Run came about
}

// Output is what the command wrote to its standard output (1) or error (2).
func (t *Trace) Output(fd string) string {
	var all []byte
	for _, s := range t.Steps {
		if s.Kind == Say && s.Name == fd {
			all = append(all, s.Data...)
		}
	}
	return string(all)
}

// Attempts returns the number of attempts up to the last step, at each of which a fault can strike.
func (t *Trace) Attempts() int {
	for _, s := range slices.Backward(t.Steps) {
		if s.Kind != Say {
			return s.Attempt + 1
		}
	}
	return 0
}

// Fault is one thing that goes wrong.
type Fault struct {
	At    int           // the attempt at a step, from 0; one that fails by itself counts too, and Say does not
	Last  int           // the last attempt of those that fail; 0: At alone
	Errno syscall.Errno // the error; 0: the command is killed before the step
	Short bool          // a write of more than a sector writes some before it fails
}

// strikes tells whether a step fails.
func (f *Fault) strikes(n int) bool { return f != nil && (n == f.At || n > f.At && n <= f.Last) }
