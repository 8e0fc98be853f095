//go:build !linux

package bolt

import "os"

// syncData makes what was written durable.
func syncData(f *os.File) error { return f.Sync() }

// willRead does nothing: what the system reads ahead by itself must do.
func willRead(*os.File, int64, int64) {}

// willBeRead tells the system that a file will be read into memory, where it wants to know.
func willBeRead([]byte) {}
