package objects

import (
	"syscall"
	"unsafe"
)

const (
	hugePage   = 2 << 20
	adviseHuge = 14 // MADV_HUGEPAGE
	// worthAdvice and mostAdvice are the least and the most that is asked for so. A machine
	// that runs on another one gives large pages back to it when they are free for some
	// seconds, and has to wait for each that it wants again.
	worthAdvice, mostAdvice = 4 << 20, 32 << 20
)

// WillFill tells the system that all of a large list will be written soon. It may then
// give the memory in large pages: to take it in small ones takes as long as to fill it.
// Lists of many megabytes are left to those.
func WillFill[T any](list []T) {
	list = list[:cap(list)]
	at, size := uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(*new(T))
	if size < worthAdvice || size > mostAdvice {
		return
	}
	// The pieces at the ends reach into memory of others, to whom it makes no difference.
	// It is an advice: what goes wrong with it is no error.
	from, to := at&^(hugePage-1), (at+size+hugePage-1)&^(hugePage-1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, adviseHuge)
}
