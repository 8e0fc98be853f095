//go:build !windows

// Package filelock takes advisory locks on open files.
package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Lock locks f until it is unlocked or closed. Without wait it returns at once and
// reports whether the lock was free.
func Lock(f *os.File, exclusive, wait bool) (bool, error) {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// Unlock unlocks f.
func Unlock(f *os.File) error {
	return os.NewSyscallError("flock", syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
}
