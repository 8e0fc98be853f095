package bolt

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects"
)

// TestIDMap holds it against a map of the language, with ids that begin alike among them.
func TestIDMap(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) (id objects.ID) {
		id[rapid.SampledFrom([]int{0, 7, 8, 31}).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		m, want := newIDMap(rapid.IntRange(0, 40).Draw(t, "room")), map[objects.ID]int32{}
		for n, one := range rapid.SliceOfN(id, 0, 200).Draw(t, "ids") {
			before, had := m.swap(&one, int32(n))
			if was, ok := want[one]; had != ok || before != was {
				t.Fatalf("%x had %d, %v, and it was %d, %v", one, before, had, was, ok)
			}
			want[one] = int32(n)
		}
		got := map[objects.ID]int32{}
		for i := range m.ids.Len() {
			one := m.ids.ID(int32(i))
			n, ok := m.get(&one)
			if !ok {
				t.Fatalf("%x is not there", one)
			}
			got[one] = n
		}
		if !maps.Equal(got, want) {
			t.Errorf("it has %v, want %v", got, want)
		}
		other := id.Draw(t, "other")
		_, ok := m.get(&other)
		if _, there := want[other]; there != ok {
			t.Errorf("%x is there: %v, want %v", other, ok, there)
		}
	})
}
