// Package hugepage asks the system for memory in pages of 2 MB. A prompt of a long history fills many
// megabytes for the first time; with one page fault for each 4 KB of them it takes 1.3 times as long.
package hugepage

import "unsafe"

// pageSize is the size of a large page in bytes.
const pageSize = 2 << 20

// Advise tells the system that all of the memory of a list, up to its capacity, will be written soon.
// It does nothing for a list of less than 1 MB, and on systems other than Linux. Memory beside the
// list that lies in the same large pages is not harmed.
func Advise[T any](list []T) {
	size := uintptr(cap(list)) * unsafe.Sizeof(*new(T))
	if size < pageSize/2 {
		return
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(list)))
	begin, end := from&^(pageSize-1), (from+size+pageSize-1)&^(pageSize-1)
	advise(begin, end-begin)
}

// maxGrowth is the most elements that Take allocates at once, unless more are taken. A caller may
// keep a few of them for long.
const maxGrowth = 8 << 20

// Take returns the next n elements of some memory, which are not zero, and allocates more memory when
// that is full. Those that were taken before stay valid.
func Take[T any](memory *[]T, n int) []T {
	from := len(*memory)
	if cap(*memory)-from < n {
		*memory, from = make([]T, 0, max(n, min(2*cap(*memory), maxGrowth))), 0
		Advise(*memory)
	}
	*memory = (*memory)[:from+n]
	return (*memory)[from : from+n : from+n]
}
