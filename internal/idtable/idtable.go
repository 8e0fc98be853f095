// Package idtable numbers object ids, in less memory than a Go map takes: for checks that
// hold every id of a store.
package idtable

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/tract-vcs/tract/objects"
)

// Table numbers ids in the order in which they are added, from 0. It is a hash table with
// linear probing. An id is a hash already, so that its first 8 bytes choose the slot; a
// random factor keeps anyone from making ids that all choose the same one. New makes a Table.
// It is not safe for concurrent use.
type Table struct {
	ids    []objects.ID // by number
	slots  []slot       // at least half of them are free
	factor uint64
	shift  int
}

// slot refers to one id.
type slot struct {
	tag  uint32 // bytes of the id that did not choose the slot
	next int32  // its number plus 1; 0: the slot is free
}

// New makes a table for about so many ids.
func New(about int) Table {
	t := Table{ids: make([]objects.ID, 0, about), factor: rand.Uint64() | 1}
	t.grow(about)
	return t
}

// grow makes slots for n ids.
func (t *Table) grow(n int) {
	size := bits.Len(uint(max(2*n, 16) - 1))
	t.slots, t.shift = make([]slot, 1<<size), 64-size
	for i, id := range t.ids {
		*t.slotOf(id) = slot{tagOf(id), int32(i) + 1}
	}
}

func tagOf(id objects.ID) uint32 { return binary.NativeEndian.Uint32(id[8:]) }

// slotOf returns the slot of an id, or the free one that it would get.
func (t *Table) slotOf(id objects.ID) *slot {
	tag := tagOf(id)
	for i := binary.NativeEndian.Uint64(id[:]) * t.factor >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i]
		if s.next == 0 || s.tag == tag && t.ids[s.next-1] == id {
			return s
		}
	}
}

// Len returns how many ids have a number.
func (t *Table) Len() int { return len(t.ids) }

// ID returns the id with number n.
func (t *Table) ID(n int32) objects.ID { return t.ids[n] }

// Find returns the number of an id, and whether it has one.
func (t *Table) Find(id objects.ID) (n int32, ok bool) {
	s := t.slotOf(id)
	return max(s.next-1, 0), s.next > 0
}

// Add returns the number of an id, and whether it is fresh: it was given only now.
func (t *Table) Add(id objects.ID) (n int32, fresh bool) {
	s := t.slotOf(id)
	if s.next > 0 {
		return s.next - 1, false
	}
	n = int32(len(t.ids))
	t.ids = append(t.ids, id)
	*s = slot{tagOf(id), n + 1}
	if 2*len(t.ids) > len(t.slots) {
		t.grow(2 * len(t.ids))
	}
	return n, true
}
