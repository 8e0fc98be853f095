package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// marks says which objects of a store gc keeps. It has one bit for each object of a pack, which
// is known by its pack and its row there, and reads the edges of objects from the heads of packs
// when it follows them. So its memory is a small part of that of the ids.
type marks struct {
	src         *source
	before      time.Time  // what was there before it is not young
	lastOldPack uint32     // the objects of this pack and of earlier ones were there
	packs       []packRows // ascending
	rows        int        // of all of them
	kept        bitset     // rows
	unfollowed  bitset     // packs with rows that were not followed yet
	records     map[objects.ID]*markedRecord
	roots       []uint64 // the first 8 bytes of their ids, sorted
	lastEntry   uint64   // the last log entry that was read
	reachable   int      // objects to which a root leads
	withYoung   bool     // what is young is marked too
}

// packRows is a pack and where its rows are in the bitset.
type packRows struct {
	number      uint32
	first, rows int
}

// markedRecord is what is known of a tombstone, or of an object of the journal.
type markedRecord struct {
	edges     []objects.ID
	size      int
	inJournal bool
	young     bool
	kept      bool
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) clear(i int)    { b[i/64] &^= 1 << (i % 64) }

// highest returns the highest bit that is set, or -1.
func (b bitset) highest() int {
	for w := len(b) - 1; w >= 0; w-- {
		if b[w] != 0 {
			return w*64 + bits.Len64(b[w]) - 1
		}
	}
	return -1
}

// findKept finds out what is kept: what refs, log entries and more roots lead to, and what is young,
// if a time before now says what is not. Of what is written meanwhile nothing may be marked: a [copier] copies all
// of that, and what it refers to.
func findKept(src *source, keep []objects.ID, before time.Time, lastOldPack uint32) (*marks, error) {
	m := &marks{src: src, before: before, lastOldPack: lastOldPack, records: map[objects.ID]*markedRecord{}}
	for _, id := range keep {
		m.addRoot(id)
	}
	if err := runInOrder(m.readRoots, m.readRecords, m.listPacks, m.markReachable); err != nil {
		return nil, err
	}
	if m.reachable = m.count(); !before.Before(time.Now()) {
		return m, nil
	}
	m.withYoung = true
	return m, m.markReachable()
}

// markReachable marks the roots (or, if withYoung is set, what is young) and everything that they lead to.
func (m *marks) markReachable() error {
	for at := range m.packs {
		if !m.withYoung || m.isYoung(at) {
			m.unfollowed.set(at)
		}
	}
	if err := m.markRecords(); err != nil {
		return err
	}
	return m.follow()
}

// isYoung reports whether every object of a pack is marked because it is young.
func (m *marks) isYoung(packIndex int) bool {
	return m.withYoung && m.packs[packIndex].number > m.lastOldPack
}

// count returns how many objects are marked.
func (m *marks) count() (n int) {
	for _, word := range m.kept {
		n += bits.OnesCount64(word)
	}
	for _, k := range m.records {
		if k.kept {
			n++
		}
	}
	return n
}

// readRoots reads what refs and log entries name.
func (m *marks) readRoots() error {
	err := m.src.refs(func(_ string, target objects.ID, _ []byte) error {
		m.addRoot(target)
		return nil
	})
	if err == nil {
		err = m.src.logEntries(0, func(e objects.LogEntry) error {
			for _, u := range e.Refs {
				m.addRoot(u.Old)
				m.addRoot(u.New)
			}
			m.lastEntry = e.Seq
			return nil
		})
	}
	m.sortRoots()
	return err
}

func (m *marks) addRoot(id objects.ID) {
	if len(m.roots) == cap(m.roots) { // many ids come twice: an entry's old one and a new one
		m.sortRoots()
		m.roots = slices.Grow(m.roots, max(1<<12, len(m.roots)/2))
	}
	m.roots = append(m.roots, binary.BigEndian.Uint64(id[:]))
}

func (m *marks) sortRoots() {
	slices.Sort(m.roots)
	m.roots = slices.Compact(m.roots)
}

func (m *marks) isRoot(id *objects.ID) bool {
	_, found := slices.BinarySearch(m.roots, binary.BigEndian.Uint64(id[:]))
	return found
}

func (m *marks) readRecords() error {
	return m.src.records(func(id objects.ID, value []byte) error {
		o, err := decodeObject(id, value)
		if err == nil {
			o, err = verified(o)
		}
		k := &markedRecord{edges: slices.Concat(o.Parents, o.Links), size: len(o.Data), inJournal: true, young: true}
		if purged := (*objects.PurgedError)(nil); errors.As(err, &purged) {
			k.inJournal, k.young, err = false, !purged.Tombstone.Time.Before(m.before), nil
		}
		m.records[id] = k
		return err
	})
}

// listPacks reads which packs there are.
func (m *marks) listPacks() error {
	err := m.src.heads(func(p *pack) error {
		m.packs = append(m.packs, packRows{p.n, m.rows, p.Len()})
		m.rows += p.Len()
		return nil
	})
	m.kept, m.unfollowed = newBitset(m.rows), newBitset(len(m.packs))
	return err
}

// markRecords marks the roots among the records, or, if withYoung is set, the young
// records: the objects of the journal, and tombstones of late purges.
func (m *marks) markRecords() error {
	return m.src.view(func(l *snapshot) error {
		for id, k := range m.records {
			if !m.withYoung && m.isRoot(&id) || m.withYoung && k.young {
				if err := m.markThroughRecords(l, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// markThroughRecords marks an object by its id, and what it refers to if it is a record. An object in a
// pack is followed later.
func (m *marks) markThroughRecords(l *snapshot, id objects.ID) error {
	for todo := []objects.ID{id}; len(todo) > 0; {
		edges, _, err := m.markNew(l, todo[len(todo)-1])
		if err != nil {
			return err
		}
		todo = append(todo[:len(todo)-1], edges...)
	}
	return nil
}

// markNew marks an object by its id. If it was not marked before, it returns the edges of a
// record, or reports that the object is in a pack, which is followed later.
func (m *marks) markNew(l *snapshot, id objects.ID) (edges []objects.ID, newInPack bool, err error) {
	if k := m.records[id]; k != nil {
		if !k.kept {
			k.kept, edges = true, k.edges
		}
		if k.inJournal { // a tombstone's object may have been put again
			return edges, false, nil
		}
	}
	found, ok, err := l.locate(id)
	if err != nil || !ok {
		return edges, false, err
	}
	at, ok := m.findPack(found.pack)
	if !ok || found.row >= m.packs[at].rows || m.kept.has(m.packs[at].first+found.row) {
		return edges, false, nil
	}
	m.kept.set(m.packs[at].first + found.row)
	m.unfollowed.set(at)
	return edges, true, nil
}

// findPack returns the index in m.packs of the pack with a number.
func (m *marks) findPack(number uint32) (packIndex int, ok bool) {
	return slices.BinarySearchFunc(m.packs, number, func(p packRows, n uint32) int { return cmp.Compare(p.number, n) })
}

// viewRows is how many objects of packs are followed in one view.
const viewRows = 1 << 14

// follow follows the edges of all marked objects. Those of an object lead mostly to earlier
// packs, so one pass from the last pack to the first does most.
func (m *marks) follow() error {
	for m.unfollowed.highest() >= 0 {
		err := m.src.view(func(l *snapshot) error {
			rows := 0
			for at := m.unfollowed.highest(); at >= 0 && rows < viewRows; at = m.unfollowed.highest() {
				m.unfollowed.clear(at)
				if err := m.markRootsAndFollowPack(l, at); err != nil {
					return err
				}
				rows += m.packs[at].rows
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// markRootsAndFollowPack marks the roots of a pack, and what the edges of its marked objects lead to.
func (m *marks) markRootsAndFollowPack(l *snapshot, packIndex int) error {
	p, err := l.soundPack(m.packs[packIndex].number)
	if err != nil {
		return err
	}
	m.src.viewed += len(p.ids)
	first := m.packs[packIndex].first
	others := map[int]bool{}
	var edges []int
	for i := p.Len() - 1; i >= 0; i-- {
		if p.isPurged(i) || !m.kept.has(first+i) && !m.isYoung(packIndex) && !m.isRoot(p.ID(i)) {
			continue
		}
		m.kept.set(first + i)
		edges = p.EdgeNumbers(i, edges[:0])
		for _, k := range edges {
			if k < i && !p.isPurged(k) {
				m.kept.set(first + k)
			} else {
				others[k] = true
			}
		}
	}
	for k := range others {
		if err := m.markThroughRecords(l, *p.ID(k)); err != nil {
			return err
		}
	}
	return nil
}

// keeps reports whether an object of a pack is kept. What was written after the marks were made
// is.
func (m *marks) keeps(number uint32, row int) bool {
	at, ok := m.findPack(number)
	return !ok || m.kept.has(m.packs[at].first+row)
}

// removesTombstone reports whether a tombstone is left out. One that was not there when it was marked is not.
func (m *marks) removesTombstone(id objects.ID) bool {
	k := m.records[id]
	return k != nil && !k.kept
}

// countSwept counts what is kept and what is not.
func (m *marks) countSwept(swept *objects.Swept) error {
	swept.Kept, swept.Young = m.reachable, m.count()-m.reachable
	remove := func(id objects.ID, size int) {
		swept.Removed++
		swept.RemovedBytes += int64(size)
		if len(swept.Examples) < 10 {
			swept.Examples = append(swept.Examples, id)
		}
	}
	for id, k := range m.records {
		if !k.kept {
			remove(id, k.size)
		}
	}
	err := m.src.heads(func(p *pack) error {
		for i := range p.Len() {
			if !m.keeps(p.n, i) && !p.isPurged(i) {
				_, size := p.Data(i)
				remove(*p.ID(i), size)
			}
		}
		return nil
	})
	slices.SortFunc(swept.Examples, objects.ID.Compare)
	return err
}
