package bolt

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes a lock that ends with the file. Without wait it tells whether
// the lock was free. The byte is the one that bbolt locks.
func lockFile(f *os.File, exclusive, wait bool) (bool, error) {
	const far = 1<<32 - 1
	how := uint32(0)
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{Offset: far, OffsetHigh: far})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

func unlockFile(f *os.File) error {
	const far = 1<<32 - 1
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: far, OffsetHigh: far})
	return os.NewSyscallError("UnlockFileEx", err)
}

// renamesOpen: a file that is open keeps its name.
const renamesOpen = false

func nameless(fs.FileInfo) bool { return false }

// syncDir does nothing: the file system keeps names in its own journal.
func syncDir(string) error { return nil }
