package bolt

import (
	"fmt"

	"github.com/tract-vcs/tract/objects/bolt/internal/index"
)

// indexCheck compares the index with the packs. For each pack it has one number made of
// all entries of the pack, so that its memory does not grow with the objects.
type indexCheck struct {
	runs    index.Runs
	known   bool
	count   map[index.Run]uint64 // entries found, by run without its number of entries
	entries map[uint32]*tally    // by pack, what the index has
	packs   map[uint32]tally     // by pack, what it must have
}

func newIndexCheck() indexCheck {
	return indexCheck{count: map[index.Run]uint64{}, entries: map[uint32]*tally{}, packs: map[uint32]tally{}}
}

// addEntry adds an entry of the index, or what it must be.
func (t *tally) addEntry(e index.Entry) {
	h := (uint64(e.Prefix) ^ uint64(e.Slot)<<33) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(e.Slot)) * 0xbf58476d1ce4e5b9
	t.count, t.sum = t.count+1, t.sum+(h^h>>32)
}

// tallyOf returns what the index must have of a pack.
func tallyOf(p *pack) (t tally) {
	for i := range p.Len() {
		t.addEntry(newIndexEntry(p.id(i), place{p.n, i}))
	}
	return t
}

// add checks a chunk of the index and adds its entries.
func (x *indexCheck) add(key, value []byte) error {
	entries, err := decodeChunk(nil, key, value)
	if err != nil {
		return err
	}
	r, err := index.ParseKey(key)
	if err != nil {
		return err
	}
	x.count[r] += uint64(len(entries))
	for _, e := range entries {
		t := x.entries[e.Pack]
		if t == nil {
			t = &tally{}
			x.entries[e.Pack] = t
		}
		t.addEntry(e)
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
	for _, r := range x.runs.List {
		if have := x.count[index.Run{Level: r.Level, Number: r.Number}]; have != r.Entries {
			return wrong("run %d has %d entries of %d", r.Number, have, r.Entries)
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
