//go:build !linux

package journal

import "os"

// SyncData makes written bytes durable.
func SyncData(f *os.File) error { return f.Sync() }
