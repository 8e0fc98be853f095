package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// indexAudit holds the index to the packs.
type indexAudit struct {
	runs  runs
	known bool
	packs []*indexedPack    // by number
	count map[uint64]uint64 // entries of a run
}

type indexedPack struct {
	n      uint32
	begins []uint64 // the first 8 bytes of each id
	found  []bool   // the index has it
}

// add notes a pack. They come in the order of their numbers.
func (x *indexAudit) add(p *indexedPack) {
	if len(x.packs) == 0 || x.packs[len(x.packs)-1].n < p.n {
		x.packs = append(x.packs, p)
	}
}

// pack finds a pack; nil: it is not there, or damaged. Mostly no number is left out.
func (x *indexAudit) pack(n uint32) *indexedPack {
	if len(x.packs) == 0 || n < x.packs[0].n {
		return nil
	}
	if at := n - x.packs[0].n; uint64(at) < uint64(len(x.packs)) && x.packs[at].n == n {
		return x.packs[at]
	}
	at, ok := slices.BinarySearchFunc(x.packs, n, func(p *indexedPack, n uint32) int { return cmp.Compare(p.n, n) })
	if !ok {
		return nil
	}
	return x.packs[at]
}

// indexCheck is some pieces of the index that are looked at.
type indexCheck struct {
	a       *auditor
	forgive bool // packs are damaged, which is told
	list    []indexPiece
}

// indexPiece is one, the page it is in, and what was found.
type indexPiece struct {
	page       node
	key, value []byte
	entries    []byte
	err        error
}

// indexPieces is how many are looked at at once.
const indexPieces = 32

// indexRow has a piece of the index looked at. It keeps the value.
func (a *auditor) indexRow(page node, key, value []byte) error {
	c := a.indexing
	if c == nil {
		c = &indexCheck{a: a, forgive: a.hurt[headsBucket] || a.harm > 0}
		a.indexing = c
	}
	if c.list = append(c.list, indexPiece{page: page, key: key, value: value}); len(c.list) < indexPieces {
		return nil
	}
	return a.beginIndex()
}

// beginIndex has the pieces looked at that were gathered.
func (a *auditor) beginIndex() error {
	c := a.indexing
	if a.indexing = nil; c == nil {
		return nil
	}
	return a.begin(c)
}

func (c *indexCheck) run(room *arena) {
	for i := range c.list {
		p := &c.list[i]
		if p.entries, p.err = parseChunkIn(room, p.key, p.value); p.err == nil {
			p.err = c.compare(p)
		}
	}
}

// compare holds the entries of a piece to the packs.
func (c *indexCheck) compare(p *indexPiece) error {
	if !bytes.Equal(p.key[5:], p.entries[:indexPrefix]) {
		return fmt.Errorf("the piece %x of the index begins with another id", p.key)
	}
	unknown := 64 - 8*run{level: uint64(p.key[0])}.prefix() // bits of the beginning of an id
	var lastBegin, lastPlace uint64
	for entries := p.entries; len(entries) > 0; entries = entries[entrySize:] {
		begin, at := binary.BigEndian.Uint64(entries), binary.BigEndian.Uint64(entries[entrySize-8:])&(1<<48-1)
		if begin < lastBegin || begin == lastBegin && at < lastPlace {
			return fmt.Errorf("the piece %x of the index is out of order", p.key)
		}
		lastBegin, lastPlace = begin, at
		number, slot := uint32(at>>16), int(at&0xffff)
		in := c.a.index.pack(number)
		if in == nil && c.forgive {
			continue
		}
		if in == nil || slot >= len(in.begins) || in.begins[slot]>>unknown != begin>>unknown {
			return fmt.Errorf("the piece %x of the index leads to object %d of pack %d, which is another or none", p.key, slot, number)
		}
	}
	return nil
}

// settle notes what the index has, and tells what is wrong with it.
func (c *indexCheck) settle() error {
	x := &c.a.index
	for i := range c.list {
		p := &c.list[i]
		if p.err != nil {
			if err := c.a.spoilt(p.page, p.err); err != nil {
				return err
			}
			continue
		}
		if x.count == nil {
			x.count = map[uint64]uint64{}
		}
		level, number := uint64(p.key[0]), uint64(binary.BigEndian.Uint32(p.key[1:]))
		x.count[level<<32|number] += uint64(len(p.entries) / entrySize)
		for entries := p.entries; len(entries) > 0; entries = entries[entrySize:] {
			if in := x.pack(binary.BigEndian.Uint32(entries[indexPrefix:])); in != nil {
				in.found[binary.BigEndian.Uint16(entries[indexPrefix+4:])] = true
			}
		}
	}
	return nil
}

// settleIndex tells what the index has not.
func (a *auditor) settleIndex() error {
	number := indexBucket
	if a.hurt[number] || !a.index.known || a.harm > 0 {
		return nil
	}
	for _, r := range a.index.runs.list {
		if have := a.index.count[r.level<<32|r.number]; have != r.entries {
			return a.damage("index", fmt.Errorf("run %d has %d entries of %d", r.number, have, r.entries), "objects are not found although they are there; tract recover makes a store with a new index")
		}
	}
	missing := 0
	for _, p := range a.index.packs {
		for _, found := range p.found {
			if !found {
				missing++
			}
		}
	}
	if missing > 0 {
		return a.damage("index", fmt.Errorf("%d objects are not in it", missing), "they are not found although they are there; tract recover makes a store with a new index")
	}
	return nil
}
