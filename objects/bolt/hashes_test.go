package bolt

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortHashes gives the order that any other way of sorting gives, also of what is no
// hash and begins alike.
func TestSortHashes(t *testing.T) {
	compare := func(a, b indexEntry) int { return bytes.Compare(a[:], b[:]) }
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) (e indexEntry) {
			for i := range e {
				e[i] = rapid.SampledFrom([]byte{0, 1, 0xff, 0x80, rapid.Byte().Draw(t, "any")}).Draw(t, "byte")
			}
			return e
		})).Draw(t, "entries")
		want := slices.Clone(list)
		slices.SortFunc(want, compare)
		if have := sortHashes(list, (*indexEntry).begin, compare); !slices.Equal(have, want) {
			t.Fatalf("have %x\nwant %x", have, want)
		}
	})
}
