package objects

import (
	"syscall"
	"unsafe"
)

const (
	hugePage   = 2 << 20
	adviseHuge = 14 // MADV_HUGEPAGE
	// worthAdvice and mostAdvice are the least and the most bytes that advice is given for.
	// A virtual machine gives free huge pages back to its host after some seconds, and has
	// to wait for each that it needs again.
	worthAdvice, mostAdvice = 4 << 20, 32 << 20
)

// AdviseHugePages asks the system for huge pages in place of the memory of a large list
// that will be written soon: to get fresh memory 4 KB at a time takes as long as to fill
// it. "warm compile in a new process, 100k commits" of make bench takes 56 ms with it and
// 86 ms without. It changes no content, and longer lists are left to small pages.
func AdviseHugePages[T any](list []T) {
	list = list[:cap(list)]
	at, size := uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(*new(T))
	if size < worthAdvice || size > mostAdvice {
		return
	}
	// The pages at the ends may hold other memory too, which does not change either. An
	// advice that the system does not take is no error.
	from, to := at&^(hugePage-1), (at+size+hugePage-1)&^(hugePage-1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, adviseHuge)
}
