package bolt

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page where they are not larger.
const hugePage = 2 << 20

// largeRoom is memory for n bytes, empty. The system is asked for huge pages: to take
// the memory page by page takes as long as to fill it. Those at the ends reach into
// memory of others, to whom it makes no difference.
func largeRoom(n int) []byte {
	b := make([]byte, 0, n)
	if n >= loadLeast {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		from, to := at&^(hugePage-1), (at+uintptr(n)+hugePage-1)&^(hugePage-1)
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
	}
	return b
}
