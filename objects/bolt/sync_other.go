//go:build !linux

package bolt

import (
	"errors"
	"os"
)

// syncData makes what was written durable.
func syncData(f *os.File) error { return f.Sync() }

// willRead does nothing: what the system reads ahead by itself must do.
func willRead(*os.File, int64, int64) (missing bool) { return false }

// inMemory tells whether a byte of a file can be read without the disk, as far as one
// can know.
func inMemory(*os.File, int64) bool { return true }

// again and pull do nothing: where nobody knows what is in memory, nothing is read ahead.
func again(*os.File) (*os.File, error)  { return nil, errors.ErrUnsupported }
func pull(*os.File, int64, int64) error { return errors.ErrUnsupported }

// willBeRead tells the system that a file will be read into memory, where it wants to know.
func willBeRead([]byte) {}
