package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// indexCheck compares the index with the packs. For each pack it has one number made of
// all entries of the pack, so that its memory does not grow with the objects.
type indexCheck struct {
	runs    runs
	known   bool
	count   map[run]uint64    // entries found, by run without its number of entries
	entries map[uint32]*tally // by pack, what the index has
	packs   map[uint32]tally  // by pack, what it must have
}

func newIndexCheck() indexCheck {
	return indexCheck{count: map[run]uint64{}, entries: map[uint32]*tally{}, packs: map[uint32]tally{}}
}

// addEntry adds an entry of the index, or what it must be. Runs differ in how much of an id they
// have, so the first 4 bytes count.
func (t *tally) addEntry(id []byte, slot int) {
	h := (uint64(binary.BigEndian.Uint32(id)) ^ uint64(slot)<<33) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(slot)) * 0xbf58476d1ce4e5b9
	t.count, t.sum = t.count+1, t.sum+(h^h>>32)
}

// tallyOf returns what the index must have of a pack.
func tallyOf(p *pack) (t tally) {
	for i := range p.Len() {
		t.addEntry(p.ID(i)[:], i)
	}
	return t
}

// add checks a chunk of the index and adds its entries.
func (x *indexCheck) add(room *arena, key, value []byte) error {
	entries, err := parseChunkIn(room, key, value)
	if err != nil {
		return err
	}
	if !bytes.Equal(key[5:], entries[:indexPrefix]) {
		return fmt.Errorf("the chunk %x of the index begins with another id", key)
	}
	x.count[run{level: uint64(key[0]), number: uint64(binary.BigEndian.Uint32(key[1:]))}] += uint64(len(entries) / entrySize)
	var last indexEntry
	for ; len(entries) > 0; entries = entries[entrySize:] {
		e := indexEntry(entries)
		if bytes.Compare(e[:], last[:]) < 0 {
			return fmt.Errorf("the chunk %x of the index is out of order", key)
		}
		last = e
		t := x.entries[e.place().pack]
		if t == nil {
			t = &tally{}
			x.entries[e.place().pack] = t
		}
		t.addEntry(e[:], e.place().slot)
	}
	return nil
}

// checkIndex reports what the index lacks, once all packs were read.
func (a *checker) checkIndex() error {
	x := &a.index
	if a.damaged[indexBucket] || !x.known || a.harmful > 0 {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return a.reportDamage("index", fmt.Errorf(format, args...), "objects are not found although they are there; tract recover makes a store with a new index")
	}
	for _, r := range x.runs.list {
		if have := x.count[run{level: r.level, number: r.number}]; have != r.entries {
			return wrong("run %d has %d entries of %d", r.number, have, r.entries)
		}
	}
	missing := uint64(0)
	for n, want := range x.packs {
		have := x.entries[n]
		delete(x.entries, n)
		switch {
		case have == nil:
			missing += want.count
		case have.count < want.count:
			missing += want.count - have.count
		case *have != want:
			if err := wrong("its entries of pack %d lead to other objects, or to none", n); err != nil {
				return err
			}
		}
	}
	for n := range x.entries {
		return wrong("it leads to pack %d, which is not there", n)
	}
	if missing > 0 {
		return wrong("%d objects are not in it", missing)
	}
	return nil
}
