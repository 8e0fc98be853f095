package hugepage

import "syscall"

// advise passes a range of memory to madvise. An error changes nothing but the speed.
func advise(begin, size uintptr) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, size, syscall.MADV_HUGEPAGE)
}
