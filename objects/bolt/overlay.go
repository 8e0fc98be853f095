package bolt

import (
	"bytes"
	"iter"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// overlay is what the journal says of the keys of the file beneath it. It only
// grows, so that whoever has a mark sees it as it was then.
type overlay struct {
	salt [saltSize]byte // of the journal
	gen  uint64         // of the frames it is made of
	end  int64          // of the last of them
	seq  uint64         // of the last of them

	mu     sync.RWMutex
	frames []laid
	trees  [bucketCount]branch
	kept   *listing
}

// laid is a frame whose changes an overlay has, from its beginning on.
type laid struct {
	b   []byte
	at  int64 // where it begins in the journal
	own bool  // this process has made it, of objects that were hashed
}

// listing is a sorted list of one bucket, kept for the next who asks.
type listing struct {
	bucket int
	mark   int32
	sorted []edit
}

// mark is how much of an overlay somebody sees: so many edits of each bucket.
type mark [bucketCount]int32

// newOverlay is that of a journal of which no frame was read.
func newOverlay(b binding) *overlay {
	o := &overlay{salt: b.salt, gen: b.gen, end: journalStart, seq: b.seq}
	for i := range o.trees {
		switch i {
		case movesNumber, recentNumber: // these are only listed
		case logNumber:
			o.trees[i].rising = true
		default:
			o.trees[i].last = map[string]*int32{}
		}
	}
	o.trees[objectsNumber].byID = newIDMap(0)
	return o
}

// add takes in the changes of a frame, which ends there. own says that this process has
// made it.
func (o *overlay) add(f *frame, end int64, seq uint64, own bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames = append(o.frames, laid{f.b, o.end, own})
	for i := range f.spans {
		s := &f.spans[i]
		at := uint32(s.begin)
		c := slot{frame: int32(len(o.frames) - 1), key: at + uint32(s.key), keyEnd: at + uint32(s.keyEnd)}
		if !s.gone {
			c.value, c.valueEnd = at+uint32(s.value), at+uint32(s.end)
		}
		o.put(int(s.bucket), c)
	}
	o.end, o.seq = end, seq
}

// now is all that is there.
func (o *overlay) now() (m mark) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for i := range m {
		m[i] = o.trees[i].count
	}
	return m
}

// get finds the value of a key as of a mark. A key that was deleted has none.
func (o *overlay) get(bucket int, key []byte, m *mark) (value []byte, edited bool) {
	if m[bucket] == 0 {
		return nil, false
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	b := &o.trees[bucket]
	i, ok := o.at(b, key)
	if !ok {
		return nil, false
	}
	for i >= m[bucket] {
		if i = b.slot(i).before; i < 0 {
			return nil, false
		}
	}
	_, value = b.slot(i).in(o.frames)
	return value, true
}

// sorted lists the last edits of a bucket as of a mark by key.
func (o *overlay) sorted(bucket int, m *mark) []edit {
	n := m[bucket]
	if n == 0 {
		return nil
	}
	o.mu.RLock()
	kept := o.kept
	if kept != nil && kept.bucket == bucket && kept.mark == n {
		o.mu.RUnlock()
		return kept.sorted
	}
	b, edits := &o.trees[bucket], o.edits(bucket, m)
	rising, list := b.rising, edits.lastByKey(b)
	o.mu.RUnlock()
	switch {
	case list != nil:
		slices.SortFunc(list, func(a, b edit) int { return bytes.Compare(a.key, b.key) })
	case rising:
		list = edits.all()
	default:
		list = edits.lastInOrder()
	}
	o.mu.Lock()
	o.kept = &listing{bucket: bucket, mark: n, sorted: list}
	o.mu.Unlock()
	return list
}

// length is how many bytes of the journal it is of.
func (o *overlay) length() int64 { return o.end - journalStart }

// of tells whether it is of the frames that count.
func (o *overlay) of(b binding) bool { return o.gen == b.gen }

// inOrder gives a sorted copy of a list. Those that are alike stay as they were.
func inOrder[T any](list []T, compare func(a, b *T) int) []T {
	places := make([]int32, len(list))
	for i := range places {
		places[i] = int32(i)
	}
	slices.SortFunc(places, func(a, b int32) int {
		if c := compare(&list[a], &list[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	sorted := make([]T, len(list))
	for i, at := range places {
		sorted[i] = list[at]
	}
	return sorted
}

// changes lists the last edit, as of a mark, of every key but those of objects, of refs by
// time (see recents), and of moves when the entries are so many that they are laid together,
// with moves of their own.
func (o *overlay) changes(m mark) []change {
	n := 0
	for i := range m {
		n += int(m[i])
	}
	list := make([]change, 0, n-int(m[objectsNumber]))
	for i, name := range buckets {
		if i == objectsNumber || i == recentNumber || i == movesNumber && m[logNumber] >= logFew {
			continue
		}
		for _, e := range o.sorted(i, &m) {
			list = append(list, change{name, e.key, e.value})
		}
	}
	return list
}

// recents is changes of the refs by time. In a file whose refs can be read it follows from
// those: most of what the journal says of it came and went within the journal.
func (o *overlay) recents(l *look, m mark) (list []change) {
	var edits []edit
	for _, e := range o.sorted(refsNumber, &m) {
		was, err := l.ref(string(e.key))
		now := refRecord{}
		if err == nil && e.value != nil {
			now, err = decodeRef(string(e.key), e.value)
		}
		if err != nil {
			edits = o.sorted(recentNumber, &m)
			break
		}
		if !was.Target.IsZero() && (e.value == nil || !was.Updated.Equal(now.Updated)) {
			edits = append(edits, edit{key: recentKey(was.Ref)})
		}
		if e.value != nil {
			edits = append(edits, edit{key: recentKey(now.Ref), value: []byte{}})
		}
	}
	for _, e := range edits {
		list = append(list, change{recentBucket, e.key, e.value})
	}
	return list
}

// objects lists the records that were put before a mark, in the order in which they came.
// Those of frames that this process made, and whose sum is still right, need not be hashed.
func (o *overlay) objects(m mark) []edit {
	o.mu.RLock()
	edits := o.edits(objectsNumber, &m)
	o.mu.RUnlock()
	list := make([]edit, edits.count)
	frame, sound := int32(-1), false
	for i := range list {
		c := edits.slot(int32(i))
		if c.frame != frame {
			frame = c.frame
			f := &edits.frames[frame]
			if sound = f.own; sound {
				_, _, sound = parseFrame(binding{salt: o.salt, gen: o.gen}, f.at, f.b)
			}
		}
		list[i] = edits.at(int32(i))
		list[i].sound = sound
	}
	return list
}

// beyond lists the last edits of a bucket as of a mark from a key on, or, down, those
// below it, in the order in which a scan of that direction comes upon them.
func (o *overlay) beyond(bucket int, from []byte, down bool, m *mark) []edit {
	edits := o.sorted(bucket, m)
	at, _ := slices.BinarySearchFunc(edits, from, func(e edit, key []byte) int { return bytes.Compare(e.key, key) })
	if !down {
		return edits[at:]
	}
	below := slices.Clone(edits[:at])
	slices.Reverse(below)
	return below
}

// merged yields what the file has and what the journal has, in one order. Of a key
// that both have it is what the journal says.
func (l *look) merged(bucket string, from []byte, down bool) iter.Seq2[page.Entry, error] {
	tree := l.scanFile(bucket, from, down)
	if l.over == nil {
		return tree
	}
	edits := l.over.beyond(bucketNumber(bucket), from, down, &l.seen)
	if len(edits) == 0 {
		return tree
	}
	return func(yield func(page.Entry, error) bool) {
		rest := edits
		for e, err := range tree {
			if err != nil {
				yield(e, err)
				return
			}
			n, replaced := upTo(rest, e.Key, down)
			if !yieldEdits(rest[:n], yield) || !replaced && !yield(e, nil) {
				return
			}
			rest = rest[n:]
		}
		yieldEdits(rest, yield)
	}
}

// upTo counts the edits that a scan comes upon until it is past a key, and tells
// whether the last of them is of that key.
func upTo(edits []edit, key []byte, down bool) (n int, same bool) {
	for n < len(edits) {
		c := bytes.Compare(edits[n].key, key)
		if c == 0 {
			return n + 1, true
		}
		if (c > 0) != down {
			break
		}
		n++
	}
	return n, false
}

// yieldEdits yields the keys that edits set, without those they delete. It is false
// when no more is wanted.
func yieldEdits(edits []edit, yield func(page.Entry, error) bool) bool {
	for _, e := range edits {
		if e.value != nil && !yield(page.MemoryEntry(e.key, e.value), nil) {
			return false
		}
	}
	return true
}
