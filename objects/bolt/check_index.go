package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// indexState compares the index with the packs. For each pack it has one number made of
// all entries of the pack, so that its memory does not grow with the objects.
type indexState struct {
	runs    runs
	known   bool
	count   map[uint64]uint64     // entries of a run
	entries map[uint32]*packTally // by pack, what the index has
	packs   map[uint32]packTally  // by pack, what it must have
}

// packTally stands for a set of entries of one pack: how many, and a sum of their hashes.
// short is for entries with the first 4 bytes of an id, long for those with 8.
type packTally struct{ short, long tally }

func (t *tally) addEntry(begin uint64, slot int) {
	h := (begin ^ uint64(slot)<<1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(slot)) * 0xbf58476d1ce4e5b9
	t.count, t.sum = t.count+1, t.sum+(h^h>>32)
}

// tallyOf returns what the index must have of a pack.
func tallyOf(p *pack) (t packTally) {
	for i := range p.Len() {
		begin := binary.BigEndian.Uint64(p.ID(i)[:])
		t.long.addEntry(begin, i)
		t.short.addEntry(begin>>32<<32, i)
	}
	return t
}

// indexCheck is some pieces of the index that are looked at.
type indexCheck struct {
	a    *checker
	list []indexPiece
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
func (a *checker) indexRow(page node, key, value []byte) error {
	c := a.nextIndex
	if c == nil {
		c = &indexCheck{a: a}
		a.nextIndex = c
	}
	if c.list = append(c.list, indexPiece{page: page, key: key, value: value}); len(c.list) < indexPieces {
		return nil
	}
	return a.startIndex()
}

// startIndex has the pieces looked at that were gathered.
func (a *checker) startIndex() error {
	c := a.nextIndex
	if a.nextIndex = nil; c == nil {
		return nil
	}
	return a.start(c)
}

func (c *indexCheck) run(room *arena) {
	for i := range c.list {
		p := &c.list[i]
		if p.entries, p.err = parseChunkIn(room, p.key, p.value); p.err == nil {
			p.err = p.check()
		}
	}
}

// check checks the order of the entries.
func (p *indexPiece) check() error {
	if !bytes.Equal(p.key[5:], p.entries[:indexPrefix]) {
		return fmt.Errorf("the piece %x of the index begins with another id", p.key)
	}
	var last indexEntry
	for entries := p.entries; len(entries) > 0; entries = entries[entrySize:] {
		e := indexEntry(entries)
		if bytes.Compare(e[:], last[:]) < 0 {
			return fmt.Errorf("the piece %x of the index is out of order", p.key)
		}
		last = e
	}
	return nil
}

// finish notes what the index has, and reports what is wrong with it.
func (c *indexCheck) finish() error {
	x := &c.a.index
	for i := range c.list {
		p := &c.list[i]
		if p.err != nil {
			if err := c.a.reportPage(p.page, p.err); err != nil {
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
			e := indexEntry(entries)
			in := x.entries[e.place().pack]
			if in == nil {
				in = &packTally{}
				x.entries[e.place().pack] = in
			}
			if level == denseRun {
				in.short.addEntry(binary.BigEndian.Uint64(e[:]), e.place().slot)
			} else {
				in.long.addEntry(binary.BigEndian.Uint64(e[:]), e.place().slot)
			}
		}
	}
	return nil
}

// checkIndex tells what the index has not.
func (a *checker) checkIndex() error {
	number := indexBucket
	if a.damaged[number] || !a.index.known || a.harmful > 0 {
		return nil
	}
	for _, r := range a.index.runs.list {
		if have := a.index.count[r.level<<32|r.number]; have != r.entries {
			return a.reportDamage("index", fmt.Errorf("run %d has %d entries of %d", r.number, have, r.entries), "objects are not found although they are there; tract recover makes a store with a new index")
		}
	}
	const means = "objects are not found although they are there; tract recover makes a store with a new index"
	missing := uint64(0)
	for n, want := range a.index.packs {
		have := a.index.entries[n]
		if have == nil {
			missing += want.long.count
			continue
		}
		if all := have.short.count + have.long.count; all < want.long.count {
			missing += want.long.count - all
		} else if *have != (packTally{long: want.long}) && *have != (packTally{short: want.short}) {
			if err := a.reportDamage("index", fmt.Errorf("its entries of pack %d lead to other objects, or to none", n), means); err != nil {
				return err
			}
		}
	}
	if missing > 0 {
		return a.reportDamage("index", fmt.Errorf("%d objects are not in it", missing), means)
	}
	for n := range a.index.entries {
		if _, ok := a.index.packs[n]; !ok {
			return a.reportDamage("index", fmt.Errorf("it leads to pack %d, which is not there", n), means)
		}
	}
	return nil
}
