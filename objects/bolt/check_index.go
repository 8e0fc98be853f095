package bolt

import (
	"fmt"

	"github.com/tract-vcs/tract/objects/bolt/internal/index"
)

// indexCheck compares the index with the packs. For each pack it has one number made of all entries
// that the index has of it, less those that it must have, so that its memory does not grow with the
// objects.
type indexCheck struct {
	packs   map[uint32]*tally
	runs    index.Runs
	entries map[index.Run]uint64 // entries found, by run without its number of entries
}

func newIndexCheck() indexCheck {
	return indexCheck{packs: map[uint32]*tally{}, entries: map[index.Run]uint64{}}
}

// countEntry counts an entry of the index (delta 1), or one that it must have (delta -1).
func (x *indexCheck) countEntry(e index.Entry, delta int) {
	t := x.packs[e.Pack]
	if t == nil {
		t = &tally{}
		x.packs[e.Pack] = t
	}
	h := (uint64(e.Prefix) ^ uint64(e.Row)<<33) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(e.Row)) * 0xbf58476d1ce4e5b9
	t.count, t.sum = t.count+delta, t.sum+uint64(delta)*(h^h>>32)
}

// addChunk checks a chunk of the index and adds its entries.
func (x *indexCheck) addChunk(key, value []byte) error {
	entries, err := decodeChunk(nil, key, value)
	if err != nil {
		return err
	}
	r, err := index.ParseKey(key)
	if err != nil {
		return err
	}
	x.entries[r] += uint64(len(entries))
	for _, e := range entries {
		x.countEntry(e, 1)
	}
	return nil
}

// checkIndex reports what the index lacks, once all packs were read.
func (a *checker) checkIndex() {
	if a.damaged[indexBucket] || a.harmfulCount > 0 {
		return
	}
	missing, wrong := 0, error(nil)
	for n, t := range a.index.packs {
		switch {
		case t.count < 0:
			missing -= t.count
		case *t != tally{}:
			wrong = fmt.Errorf("its entries of pack %d lead to other objects, or to none", n)
		}
	}
	if missing > 0 {
		wrong = fmt.Errorf("%d objects are not in it", missing)
	}
	for _, r := range a.index.runs.List {
		if found := a.index.entries[index.Run{Level: r.Level, Number: r.Number}]; found != r.Entries {
			wrong = fmt.Errorf("run %d has %d entries of %d", r.Number, found, r.Entries)
		}
	}
	if wrong != nil {
		a.reportDamage("index", wrong, "objects are not found although they are there; tract recover makes a store with a new index")
	}
}
