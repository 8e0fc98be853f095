package bolt

import (
	"os"
	"syscall"
	"unsafe"

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

// willRead tells the system that a piece of a file will be read soon, unless its ends are
// in memory: then the rest mostly is, and to say so page by page takes long.
func willRead(f *os.File, at, n int64) {
	if !inMemory(f, at) || !inMemory(f, at+n-1) {
		_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
	}
}

// inMemory tells whether a byte of a file can be read without the disk. Beyond the end
// there is nothing to be read.
func inMemory(f *os.File, at int64) bool {
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{{0}}, at, unix.RWF_NOWAIT)
	return err == nil && n <= 1
}

// willBeRead tells the system that a file will be read into memory that was not used yet.
// To get its pages one by one in the midst of a copy takes a third longer.
func willBeRead(b []byte) {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	to := (from + uintptr(len(b))) &^ (page - 1)
	if from = (from + page - 1) &^ (page - 1); from < to {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_POPULATE_WRITE) // it is an advice
	}
}
