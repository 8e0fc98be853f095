package bolt

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncData makes what was written durable, and no more of the file's facts than
// reading it back needs.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// willRead tells the system that a piece of a file will be read soon.
func willRead(f *os.File, at, n int64) { _ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED) }
