//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"syscall"
)

// canDrop tells whether a file can be dropped from the page cache here.
const canDrop = true

// dontNeed is POSIX_FADV_DONTNEED.
const dontNeed = 4

// drop takes a file out of the page cache: what is read next comes from the disk.
func drop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := f.Sync(); err != nil { // what is dirty stays
		return err
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return fmt.Errorf("drop %s from the page cache: %w", path, errno)
	}
	return nil
}
