package objects

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// IDTable numbers ids in the order in which they come, from 0. It takes less than a map of
// the language: a place is found from the first 8 bytes of an id, and the next free one is
// taken when it has another, since ids are hashes and spread by themselves. The factor keeps
// somebody who makes many that begin alike from choosing the places. Whoever changes it is
// alone with it.
type IDTable struct {
	at     []ID // by number
	places []idPlace
	factor uint64
	shift  int
}

// idPlace is where an id may be found.
type idPlace struct {
	tag  uint32 // bytes of the id that are not in its place
	next int32  // its number and one; 0: free
}

// NewIDTable makes a table with room for about so many ids.
func NewIDTable(about int) IDTable {
	t := IDTable{at: make([]ID, 0, about), factor: rand.Uint64() | 1}
	t.grow(about)
	return t
}

// grow makes room for so many ids with half of the places free.
func (t *IDTable) grow(n int) {
	size := bits.Len(uint(max(2*n, 16) - 1))
	t.places, t.shift = make([]idPlace, 1<<size), 64-size
	for i, id := range t.at {
		*t.place(id) = idPlace{tagOf(id), int32(i) + 1}
	}
}

func tagOf(id ID) uint32 { return binary.NativeEndian.Uint32(id[8:]) }

// place finds the place of an id, or the free one that it would have.
func (t *IDTable) place(id ID) *idPlace {
	tag := tagOf(id)
	for i := binary.NativeEndian.Uint64(id[:]) * t.factor >> t.shift; ; i = (i + 1) & uint64(len(t.places)-1) {
		p := &t.places[i]
		if p.next == 0 || p.tag == tag && t.at[p.next-1] == id {
			return p
		}
	}
}

// Len is how many ids have a number.
func (t *IDTable) Len() int { return len(t.at) }

// ID is the id with a number.
func (t *IDTable) ID(n int32) ID { return t.at[n] }

// Find gives the number of an id; not ok: it has none.
func (t *IDTable) Find(id ID) (n int32, ok bool) {
	p := t.place(id)
	return max(p.next-1, 0), p.next > 0
}

// recentIDs is how many of the newest ids are looked at before the places: what an object
// leads to has mostly just come.
const recentIDs = 4

// Number is Find, and gives an id that is fresh the next number.
func (t *IDTable) Number(id ID) (n int32, fresh bool) {
	begin := binary.NativeEndian.Uint64(id[:])
	for i := len(t.at) - 1; i >= max(len(t.at)-recentIDs, 0); i-- {
		if binary.NativeEndian.Uint64(t.at[i][:]) == begin && t.at[i] == id {
			return int32(i), false
		}
	}
	return t.Add(id)
}

// Add is Number of an id that has probably not come before.
func (t *IDTable) Add(id ID) (n int32, fresh bool) {
	p := t.place(id)
	if p.next > 0 {
		return p.next - 1, false
	}
	n = int32(len(t.at))
	t.at = append(t.at, id)
	if *p = (idPlace{tagOf(id), n + 1}); 2*len(t.at) > len(t.places) {
		t.grow(2 * len(t.at))
	}
	return n, true
}
