//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"syscall"
)

// canEvict reports whether files can be dropped from the page cache here.
const canEvict = true

// dontNeed is POSIX_FADV_DONTNEED.
const dontNeed = 4

// evict drops a file from the page cache, so that it is read from the disk next.
func evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := f.Sync(); err != nil { // dirty pages are not dropped
		return err
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return fmt.Errorf("evict %s from the page cache: %w", path, errno)
	}
	return nil
}
