//go:build !linux

package bolt

import "os"

// syncData makes what was written durable.
func syncData(f *os.File) error { return f.Sync() }

// willRead does nothing: what the system reads ahead by itself must do.
func willRead(*os.File, int64, int64) (missing bool) { return false }

// inMemory tells whether a byte of a file can be read without the disk, as far as one
// can know.
func inMemory(*os.File, int64) bool { return true }
