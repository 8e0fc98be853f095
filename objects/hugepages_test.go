package objects_test

import (
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestHugePagesAreAnAdvice fills lists of many sizes that lie beside one another, some of
// which are in use when the system is told of the next.
func TestHugePagesAreAnAdvice(t *testing.T) {
	var lists [][]uint64
	for _, n := range []int{0, 1, 1000, 100_000, 300_000, 1_000_000} {
		list := make([]uint64, 0, n)
		objects.AdviseHugePages(list)
		for i := range n {
			list = append(list, uint64(i*n))
		}
		lists = append(lists, list)
	}
	for _, list := range lists {
		objects.AdviseHugePages(list)
		if i := slices.IndexFunc(list, func(v uint64) bool { return v%uint64(len(list)) != 0 }); i >= 0 || len(list) > 1 && list[1] != uint64(len(list)) {
			t.Errorf("a list of %d has changed at %d", len(list), i)
		}
	}
}
