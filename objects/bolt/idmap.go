package bolt

import (
	"encoding/binary"
	"math/bits"

	"github.com/tract-vcs/tract/objects"
)

// idMap gives a number for each id. It asks less than a map of the language does: an id is
// a hash already, so that where to look for it follows from its first bytes. spread keeps
// somebody who makes many that begin alike from choosing the places.
type idMap struct {
	ids     []objects.ID
	numbers []int32
	places  []int32 // an index of ids, and one; 0: free
}

func newIDMap(about int) *idMap {
	m := &idMap{ids: make([]objects.ID, 0, about), numbers: make([]int32, 0, about)}
	m.grow(about)
	return m
}

// grow makes room for so many ids with half of the places free.
func (m *idMap) grow(n int) {
	m.places = make([]int32, 1<<bits.Len(uint(max(2*n, 16)-1)))
	for i := range m.ids {
		*m.place(&m.ids[i]) = int32(i) + 1
	}
}

// place finds the place of an id, or the free one that it would have.
func (m *idMap) place(id *objects.ID) *int32 {
	last := len(m.places) - 1
	at := int(binary.LittleEndian.Uint64(id[:]) * spread >> 1 >> (63 - bits.Len(uint(last))))
	for ; ; at = (at + 1) & last {
		if p := &m.places[at]; *p == 0 || m.ids[*p-1] == *id {
			return p
		}
	}
}

func (m *idMap) get(id *objects.ID) (n int32, ok bool) {
	if p := *m.place(id); p > 0 {
		return m.numbers[p-1], true
	}
	return 0, false
}

// swap gives an id a number, and tells which it had.
func (m *idMap) swap(id *objects.ID, n int32) (before int32, had bool) {
	p := m.place(id)
	if *p > 0 {
		before, m.numbers[*p-1] = m.numbers[*p-1], n
		return before, true
	}
	m.ids, m.numbers = append(m.ids, *id), append(m.numbers, n)
	if *p = int32(len(m.ids)); 2*len(m.ids) > len(m.places) {
		m.grow(2 * len(m.ids))
	}
	return 0, false
}
