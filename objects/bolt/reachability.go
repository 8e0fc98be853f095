package bolt

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// reachability finds out which objects a sweep keeps. It has two bits for each object of a
// pack, which is known by its pack and its row there, and reads the edges of objects from
// the heads of packs when it follows them. So its memory is a small part of that of the ids.
type reachability struct {
	src   *source
	packs []packRows                  // ascending
	rows  int                         // of all of them
	kept  bitset                      // a root leads to it
	young bitset                      // it is young, or something young leads to it
	todo  bitset                      // packs with marks that were not followed yet
	loose map[objects.ID]*looseObject // objects in no pack, and tombstones
	roots []uint64                    // the first 8 bytes of their ids, sorted
	old   uint32                      // the last pack that is not young
	all   bool                        // nothing is young
	seq   uint64                      // the last log entry of the file that was read
	marks int                         // that were set
}

// packRows is a pack and where its rows are in the bitsets.
type packRows struct {
	n           uint32
	first, rows int
	purged      int
}

// looseObject is a large object, an object of the journal, or a tombstone.
type looseObject struct {
	edges     []objects.ID
	size      int
	tombstone bool
	journal   bool
	referred  bool // another object refers to it
	fate      fate
}

// fate is what becomes of an object.
type fate uint8

const (
	fateGone fate = iota
	fateYoung
	fateKept
)

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) clear(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) last() (i int) {
	for w := len(b) - 1; w >= 0; w-- {
		if b[w] != 0 {
			return w*64 + bits.Len64(b[w]) - 1
		}
	}
	return -1
}

// newReachability reads what there is and marks what a sweep keeps.
func newReachability(src *source, o objects.Sweep) (*reachability, error) {
	r := &reachability{src: src, loose: map[objects.ID]*looseObject{}, all: !o.Before.Before(time.Now())}
	for _, id := range o.Keep {
		r.addRoot(id)
	}
	for _, step := range []func(o objects.Sweep) error{r.readAges, r.readLoose, r.readPacks, r.readRoots} {
		if err := step(o); err != nil {
			return nil, err
		}
	}
	if err := r.markLoose(); err != nil {
		return nil, err
	}
	return r, r.propagate()
}

// readAges reads which packs are young.
func (r *reachability) readAges(o objects.Sweep) error {
	return r.src.view(func(l *snapshot) error {
		value, err := l.get(metaBucket, agesKey)
		if err != nil {
			return err
		}
		list, err := decodeAges(value)
		r.old = packBefore(list, o.Before)
		return err
	})
}

// readLoose reads the objects that are in no pack. One of the journal that is in a pack too
// is known by that.
func (r *reachability) readLoose(objects.Sweep) error {
	err := r.src.each(objectsBucket, []byte{}, false, nil, func(key, value []byte) error { return r.addLoose(key, value, false) })
	if err != nil || r.src.locked != nil {
		return err
	}
	return r.src.view(func(l *snapshot) error {
		for _, e := range l.mem.All(objectsBucket, l.mark) {
			if _, packed, err := l.withoutJournal().locate(objects.ID(e.Key)); err != nil || packed {
				if err != nil {
					return err
				}
				continue
			}
			if err := r.addLoose(e.Key, e.Value, true); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reachability) addLoose(key, value []byte, journal bool) error {
	if len(key) != idSize {
		return errKey(objectsBucket, key)
	}
	id := objects.ID(key)
	if isTombstone(value) {
		r.loose[id] = &looseObject{tombstone: true}
		return nil
	}
	o, err := decodeObject(id, value)
	if err == nil {
		o, err = verified(o)
	}
	if err != nil {
		return err
	}
	r.loose[id] = &looseObject{edges: slices.Concat(o.Parents, o.Links), size: len(o.Data), journal: journal}
	return nil
}

// readPacks reads which packs there are, and to which loose objects theirs refer.
func (r *reachability) readPacks(objects.Sweep) error {
	err := r.src.each(headsBucket, []byte{}, false, nil, func(key, head []byte) error {
		n, err := packNumber(key)
		if err != nil {
			return err
		}
		if len(head) < packIDs || !hasValidSum(n, head) || parsePackHeader(head).end > len(head) {
			return &objects.CorruptError{Cause: fmt.Errorf("pack %d: its head is damaged", n)}
		}
		f := parsePackHeader(head)
		_, purged, err := f.splitTable(head)
		if err != nil {
			return err
		}
		r.packs = append(r.packs, packRows{n, r.rows, f.count, len(purged)})
		r.rows += f.count
		for others := head[packIDs+f.count*idSize : f.end]; len(others) > 0; others = others[idSize:] {
			r.refer(objects.ID(others[:idSize]))
		}
		return nil
	})
	r.kept, r.young, r.todo = newBitset(r.rows), newBitset(r.rows), newBitset(len(r.packs))
	for i := range r.packs {
		r.todo.set(i)
	}
	return err
}

func (r *reachability) refer(id objects.ID) {
	if o := r.loose[id]; o != nil {
		o.referred = true
	}
}

// readRoots reads what refs and log entries name.
func (r *reachability) readRoots(objects.Sweep) error {
	err := r.src.each(refsBucket, []byte{}, true, nil, func(key, value []byte) error {
		ref, err := decodeRef(string(key), value)
		r.addRoot(ref.Target)
		return err
	})
	if err != nil {
		return err
	}
	add := func(key, value []byte) error {
		list, err := decodeEntries(key, value)
		for _, e := range list {
			for _, u := range e.Refs {
				r.addRoot(u.Old)
				r.addRoot(u.New)
			}
			r.seq = e.Seq
		}
		return err
	}
	if err := r.src.each(logBucket, []byte{}, false, nil, add); err != nil {
		return err
	}
	file := r.seq
	err = r.src.view(func(l *snapshot) error {
		for e, err := range l.ascend(logBucket, logKey(file+1)) {
			var value []byte
			if err == nil {
				value, err = e.Value()
			}
			if err == nil {
				err = add(e.Key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.seq = file // others may come between, and the copy looks at all that follow
	r.sortRoots()
	return err
}

func (r *reachability) addRoot(id objects.ID) {
	if len(r.roots) == cap(r.roots) { // many ids come twice: an entry's old one and a new one
		r.sortRoots()
		r.roots = slices.Grow(r.roots, max(1<<12, len(r.roots)/2))
	}
	r.roots = append(r.roots, binary.BigEndian.Uint64(id[:]))
}

func (r *reachability) sortRoots() {
	slices.Sort(r.roots)
	r.roots = slices.Compact(r.roots)
}

func (r *reachability) isRoot(id *objects.ID) bool {
	_, found := slices.BinarySearch(r.roots, binary.BigEndian.Uint64(id[:]))
	return found
}

// markLoose marks the loose objects that are roots or young. What lies in no pack has no
// age: it is as old as what refers to it, and young when nothing does.
func (r *reachability) markLoose() error {
	for _, o := range r.loose {
		for _, id := range o.edges {
			r.refer(id)
		}
	}
	return r.src.view(func(l *snapshot) error {
		l = l.withoutJournal()
		for id, o := range r.loose {
			f := fateGone
			switch {
			case r.isRoot(&id):
				f = fateKept
			case !r.all && (o.journal || !o.referred):
				f = fateYoung
			}
			if err := r.mark(l, id, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// mark marks an object by its id, and what it refers to if it is loose.
func (r *reachability) mark(l *snapshot, id objects.ID, f fate) error {
	for todo := []objects.ID{id}; len(todo) > 0 && f != fateGone; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if o := r.loose[id]; o != nil {
			if o.fate < f {
				o.fate = f
				r.marks++
				todo = append(todo, o.edges...)
			}
			if !o.tombstone {
				continue
			}
		}
		at, ok, err := l.locate(id)
		if err != nil {
			return err
		}
		i, known := r.find(at.pack)
		if ok && known && at.slot < r.packs[i].rows && r.markRow(r.packs[i].first+at.slot, f) {
			r.todo.set(i)
		}
	}
	return nil
}

// find returns which of the packs has a number.
func (r *reachability) find(n uint32) (i int, ok bool) {
	return slices.BinarySearchFunc(r.packs, n, func(p packRows, n uint32) int { return cmp.Compare(p.n, n) })
}

// markRow marks an object of a pack, and reports whether that is new.
func (r *reachability) markRow(bit int, f fate) bool {
	if r.kept.has(bit) || f == fateYoung && r.young.has(bit) {
		return false
	}
	r.marks++
	if f == fateKept {
		r.kept.set(bit)
	} else {
		r.young.set(bit)
	}
	return true
}

// propagate follows the edges of all marked objects. Those of an object lead mostly to
// earlier packs, so one pass from the last pack to the first does most.
func (r *reachability) propagate() error {
	for r.todo.last() >= 0 {
		err := r.src.view(func(l *snapshot) error {
			l = l.withoutJournal()
			size := 0
			for i := r.todo.last(); i >= 0 && size < viewBytes/2; i = r.todo.last() {
				n, err := r.follow(l, i)
				if err != nil {
					return err
				}
				size += n
			}
			r.src.count(size)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// follow follows the edges of the marked objects of a pack. It returns the size of the head.
func (r *reachability) follow(l *snapshot, at int) (size int, err error) {
	rows := r.packs[at]
	r.todo.clear(at)
	e, err := l.ofPack(headsBucket, rows.n)
	if err != nil {
		return 0, err
	}
	head, err := e.Value()
	if err != nil {
		return 0, err
	}
	p, err := parsePack(rows.n, head)
	if err == nil && (!p.sound || p.Len() != rows.rows) {
		err = &objects.CorruptError{Cause: fmt.Errorf("pack %d: its head is damaged", rows.n)}
	}
	if err != nil {
		return 0, err
	}
	others := map[int]fate{}
	var edges []int
	for i := p.Len() - 1; i >= 0; i-- {
		if p.isPurged(i) {
			continue
		}
		f := r.fateOf(rows, i, p.ID(i))
		if f == fateGone {
			continue
		}
		edges = p.EdgeNumbers(i, edges[:0])
		for _, k := range edges {
			if k < i && !p.isPurged(k) {
				r.markRow(rows.first+k, f)
			} else {
				others[k] = max(others[k], f)
			}
		}
	}
	for k, f := range others {
		if err := r.mark(l, *p.ID(k), f); err != nil {
			return 0, err
		}
	}
	return len(head), nil
}

// fateOf returns the fate of a row as far as it is known.
func (r *reachability) fateOf(rows packRows, i int, id *objects.ID) fate {
	bit := rows.first + i
	switch {
	case r.kept.has(bit):
		return fateKept
	case r.isRoot(id):
		r.kept.set(bit)
		return fateKept
	case !r.all && rows.n > r.old:
		r.young.set(bit)
	}
	if r.young.has(bit) {
		return fateYoung
	}
	return fateGone
}

// keeps reports whether a row of a pack is kept.
func (r *reachability) keeps(bit int) bool { return r.kept.has(bit) || r.young.has(bit) }

// count counts the objects by their fate.
func (r *reachability) count(swept *objects.Swept) error {
	add := func(f fate, id objects.ID, size int) {
		switch f {
		case fateKept:
			swept.Kept++
		case fateYoung:
			swept.Young++
		default:
			swept.Removed++
			swept.RemovedBytes += int64(size)
			if len(swept.Examples) < 10 {
				swept.Examples = append(swept.Examples, id)
			}
		}
	}
	for id, o := range r.loose {
		add(o.fate, id, o.size)
	}
	for _, rows := range r.packs {
		kept, young := r.countRows(rows)
		swept.Kept, swept.Young = swept.Kept+kept, swept.Young+young
		if kept+young+rows.purged == rows.rows {
			continue
		}
		err := r.src.view(func(l *snapshot) error {
			p, err := l.pack(rows.n)
			for i := 0; err == nil && i < p.Len(); i++ {
				if !r.keeps(rows.first+i) && !p.isPurged(i) {
					_, size := p.Data(i)
					add(fateGone, p.id(i), size)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(swept.Examples, objects.ID.Compare)
	return nil
}

// countRows counts the objects of a pack that are kept.
func (r *reachability) countRows(rows packRows) (kept, young int) {
	for bit := rows.first; bit < rows.first+rows.rows; bit++ {
		switch {
		case r.kept.has(bit):
			kept++
		case r.young.has(bit):
			young++
		}
	}
	return kept, young
}
