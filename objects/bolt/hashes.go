package bolt

import (
	"cmp"
	"math/bits"
	"slices"
)

// sortHashes sorts what begins with hashes: they spread evenly, so most of the order is
// there once each is put where its first bits say, of which there are enough for a place
// of its own. then orders those that begin alike. The list is used up.
func sortHashes[T any](list []T, begin func(T) uint64, then func(a, b T) int) []T {
	shift := 64 - min(max(bits.Len(uint(len(list))), 4), 16)
	ends := make([]int32, 1<<(64-shift)+1)
	for i := range list {
		ends[begin(list[i])>>shift+1]++
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	sorted := make([]T, len(list))
	for i := range list {
		at := &ends[begin(list[i])>>shift]
		sorted[*at] = list[i]
		*at++
	}
	from := int32(0)
	for _, to := range ends[:len(ends)-1] {
		if to-from > 1 {
			slices.SortFunc(sorted[from:to], func(a, b T) int {
				if x, y := begin(a), begin(b); x != y {
					return cmp.Compare(x, y)
				}
				return then(a, b)
			})
		}
		from = to
	}
	return sorted
}
