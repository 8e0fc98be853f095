// Package idtable numbers object ids, in less memory than a Go map takes: for checks that
// hold every id of a store.
package idtable

import (
	"hash/maphash"
	"math/bits"

	"github.com/tract-vcs/tract/objects"
)

// Hashes numbers ids in the order in which they are added, from 0. It does not keep the ids,
// but a hash of each with a random seed. Two ids have the same hash, and thus the same
// number, with a probability of 2^-64. NewHashes makes one. It is not safe for concurrent
// use.
type Hashes struct {
	seed  maphash.Seed
	keys  []uint64 // by number
	slots []int32  // a number plus 1; 0: the slot is free. At most 4 of 5 are used
}

// NewHashes makes a table for about so many ids.
func NewHashes(about int) Hashes {
	h := Hashes{seed: maphash.MakeSeed(), keys: make([]uint64, 0, about)}
	h.grow(about)
	return h
}

// grow makes slots for n ids.
func (h *Hashes) grow(n int) {
	h.slots = make([]int32, max(n+n/3, 16))
	for i, key := range h.keys {
		*h.slotOf(key) = int32(i) + 1
	}
}

func (h *Hashes) slotOf(key uint64) *int32 {
	for i, _ := bits.Mul64(key, uint64(len(h.slots))); ; i++ {
		if i == uint64(len(h.slots)) {
			i = 0
		}
		if s := &h.slots[i]; *s == 0 || h.keys[*s-1] == key {
			return s
		}
	}
}

// Find returns the number of an id, and whether it has one.
func (h *Hashes) Find(id objects.ID) (n int32, ok bool) {
	s := *h.slotOf(maphash.Bytes(h.seed, id[:]))
	return max(s-1, 0), s > 0
}

// Add returns the number of an id, and whether it is fresh: it was given only now.
func (h *Hashes) Add(id objects.ID) (n int32, fresh bool) {
	key := maphash.Bytes(h.seed, id[:])
	s := h.slotOf(key)
	if *s > 0 {
		return *s - 1, false
	}
	n = int32(len(h.keys))
	h.keys = append(h.keys, key)
	*s = n + 1
	if 5*len(h.keys) > 4*len(h.slots) {
		h.grow(len(h.keys) + len(h.keys)/2)
	}
	return n, true
}
