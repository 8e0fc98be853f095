package bolt

import (
	"os"
	"syscall"
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
