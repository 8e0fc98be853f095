package bolt

import (
	"cmp"
	"slices"
)

// sortHashes sorts what begins with hashes: they spread evenly, so most of the order is
// there once each is put where its first bits say. then orders those that begin alike.
// The list is used up.
func sortHashes[T any](list []T, begin func(*T) uint64, then func(a, b T) int) []T {
	const bits = 12
	var ends [1<<bits + 1]int
	for i := range list {
		ends[begin(&list[i])>>(64-bits)+1]++
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	sorted := make([]T, len(list))
	for i := range list {
		at := &ends[begin(&list[i])>>(64-bits)]
		sorted[*at] = list[i]
		*at++
	}
	from := 0
	for _, to := range ends[:1<<bits] {
		if to-from > 1 {
			slices.SortFunc(sorted[from:to], func(a, b T) int {
				if x, y := begin(&a), begin(&b); x != y {
					return cmp.Compare(x, y)
				}
				return then(a, b)
			})
		}
		from = to
	}
	return sorted
}
