package tract

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/tract-vcs/tract/objects"
)

// idTable numbers ids in the order in which they come. A place is found from the
// first 8 bytes of an id, and the next free one is taken when it has another: ids are
// hashes, and spread by themselves. The factor keeps somebody who makes many that begin
// alike from choosing the places.
type idTable struct {
	at     []objects.ID // by number
	places []place
	factor uint64
	shift  int
	seen   uint32 // of what was read to be there when it is needed
}

// place is where an id may be found.
type place struct {
	tag  uint32 // bytes of the id that are not in its place
	next int32  // its number and one; 0: free
}

func newIDTable(about int) idTable {
	t := idTable{at: make([]objects.ID, 0, about), factor: rand.Uint64() | 1}
	objects.WillFill(t.at)
	t.grow(about)
	return t
}

// grow makes room for so many ids with half of the places free.
func (t *idTable) grow(n int) {
	size := bits.Len(uint(max(2*n, 16) - 1))
	t.places, t.shift = make([]place, 1<<size), 64-size
	objects.WillFill(t.places)
	for i, id := range t.at {
		*t.place(id) = place{tagOf(id), int32(i) + 1}
	}
}

func tagOf(id objects.ID) uint32 { return binary.NativeEndian.Uint32(id[8:]) }

// place finds the place of an id, or the free one that it would have.
func (t *idTable) place(id objects.ID) *place {
	tag := tagOf(id)
	for i := binary.NativeEndian.Uint64(id[:]) * t.factor >> t.shift; ; i = (i + 1) & uint64(len(t.places)-1) {
		p := &t.places[i]
		if p.next == 0 || p.tag == tag && t.at[p.next-1] == id {
			return p
		}
	}
}

// expect reads the places of ids that are numbered next. Memory answers many questions at
// once far sooner than one after the other.
func (t *idTable) expect(list []objects.Object) {
	var seen uint32
	for i := range list {
		at := binary.NativeEndian.Uint64(list[i].ID[:]) * t.factor >> t.shift
		seen ^= t.places[at].tag
	}
	t.seen = seen
}

func (t *idTable) find(id objects.ID) (n int32, ok bool) {
	p := t.place(id)
	return max(p.next-1, 0), p.next > 0
}

// recent is how many of the newest ids are looked at before the places: what an object
// leads to has mostly just come.
const recent = 4

// number is find, and gives an id that is fresh the next number.
func (t *idTable) number(id objects.ID) (n int32, fresh bool) {
	begin := binary.NativeEndian.Uint64(id[:])
	for i := len(t.at) - 1; i >= max(len(t.at)-recent, 0); i-- {
		if binary.NativeEndian.Uint64(t.at[i][:]) == begin && t.at[i] == id {
			return int32(i), false
		}
	}
	return t.add(id)
}

// add is number of an id that has probably not come before.
func (t *idTable) add(id objects.ID) (n int32, fresh bool) {
	p := t.place(id)
	if p.next > 0 {
		return p.next - 1, false
	}
	n = int32(len(t.at))
	t.at = append(t.at, id)
	if *p = (place{tagOf(id), n + 1}); 2*len(t.at) > len(t.places) {
		t.grow(2 * len(t.at))
	}
	return n, true
}
