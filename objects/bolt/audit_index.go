package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// indexAudit holds the index to the packs.
type indexAudit struct {
	runs  runs
	known bool
	packs map[uint32]*indexedPack
	count map[uint64]uint64 // entries of a run
}

type indexedPack struct {
	begins []uint64 // the first 8 bytes of each id
	found  []bool   // the index has it
}

func (x *indexAudit) add(n uint32, p *indexedPack) {
	if x.packs == nil {
		x.packs = map[uint32]*indexedPack{}
	}
	x.packs[n] = p
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
		c = &indexCheck{a: a, forgive: a.hurt[bucketNumber(headsBucket)] || a.harm > 0}
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

func (c *indexCheck) run(*arena) {
	for i := range c.list {
		p := &c.list[i]
		if p.entries, p.err = parseChunk(p.key, p.value); p.err == nil {
			p.err = c.compare(p)
		}
	}
}

// compare holds the entries of a piece to the packs.
func (c *indexCheck) compare(p *indexPiece) error {
	unknown := 64 - 8*run{level: uint64(p.key[0])}.prefix() // bits of the beginning of an id
	if !bytes.Equal(p.key[5:], p.entries[:indexPrefix]) {
		return fmt.Errorf("the piece %x of the index begins with another id", p.key)
	}
	var last indexEntry
	for entries := p.entries; len(entries) > 0; entries = entries[entrySize:] {
		e := indexEntry(entries)
		if bytes.Compare(last[:], e[:]) > 0 {
			return fmt.Errorf("the piece %x of the index is out of order", p.key)
		}
		last = e
		at := e.place()
		in := c.a.index.packs[at.pack]
		if in == nil && c.forgive {
			continue
		}
		if in == nil || at.slot >= len(in.begins) || in.begins[at.slot]>>unknown != binary.BigEndian.Uint64(e[:])>>unknown {
			return fmt.Errorf("the piece %x of the index leads to object %d of pack %d, which is another or none", p.key, at.slot, at.pack)
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
			at := indexEntry(entries).place()
			if in := x.packs[at.pack]; in != nil {
				in.found[at.slot] = true
			}
		}
	}
	return nil
}

// settleIndex tells what the index has not.
func (a *auditor) settleIndex() error {
	number := bucketNumber(indexBucket)
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
