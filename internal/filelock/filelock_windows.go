// Package filelock takes advisory locks on open files.
package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is where the locked byte lies: the one that bbolt locks too.
const lockOffset = 1<<32 - 1

// Lock locks f until it is unlocked or closed. Without wait it returns at once and
// reports whether the lock was free.
func Lock(f *os.File, exclusive, wait bool) (bool, error) {
	how := uint32(0)
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{Offset: lockOffset, OffsetHigh: lockOffset})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

// Unlock unlocks f.
func Unlock(f *os.File) error {
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockOffset, OffsetHigh: lockOffset})
	return os.NewSyscallError("UnlockFileEx", err)
}
