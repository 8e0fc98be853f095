package journal

import (
	"os"
	"syscall"
)

// SyncData makes written bytes durable, and of the metadata of the file only what reading
// them back needs.
func SyncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
