package bolt

import (
	"bytes"
	"iter"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// overlay is what the journal says of the keys of the file beneath it. It only
// grows, so that whoever has a mark sees it as it was then.
type overlay struct {
	gen  uint64 // of the frames it is made of
	from int64  // where the first of them begins in the journal
	end  int64  // of the last of them
	seq  uint64 // of the last of them

	mu    sync.RWMutex
	trees [bucketCount]branch
	kept  *listing
}

// listing is a sorted list of one bucket, kept for the next who asks.
type listing struct {
	bucket int
	mark   int32
	sorted []edit
}

// branch is the edits of one bucket, in the order in which they came.
type branch struct {
	edits  []edit
	last   map[string]*int32 // the last edit of a key; nil: nobody asks for one, or they rise
	byID   *idMap            // the same, where keys are ids
	rising bool              // each key is above the one before it
}

// at gives the last edit of a key.
func (b *branch) at(key []byte) (i int32, ok bool) {
	switch {
	case b.rising:
		from, to := 0, len(b.edits)
		for from < to {
			if mid := (from + to) / 2; bytes.Compare(b.edits[mid].key, key) < 0 {
				from = mid + 1
			} else {
				to = mid
			}
		}
		return int32(from), from < len(b.edits) && bytes.Equal(b.edits[from].key, key)
	case b.byID != nil && len(key) == idSize:
		return b.byID.get((*objects.ID)(key))
	}
	last, ok := b.last[string(key)]
	if !ok {
		return 0, false
	}
	return *last, true
}

// set makes an edit the last of a key, and gives the one before it; -1: there is none.
func (b *branch) set(key []byte, i int32) (before int32) {
	if b.byID != nil && len(key) == idSize {
		if before, had := b.byID.swap((*objects.ID)(key), i); had {
			return before
		}
		return -1
	}
	last, ok := b.last[string(key)]
	if !ok {
		first := i
		b.last[string(key)] = &first
		return -1
	}
	before, *last = *last, i
	return before
}

// add takes in an edit.
func (b *branch) add(key, value []byte) {
	n, before := int32(len(b.edits)), int32(-1)
	if b.rising && n > 0 && bytes.Compare(b.edits[n-1].key, key) >= 0 {
		b.rising, b.last = false, make(map[string]*int32, 2*n)
		for i := range b.edits {
			b.set(b.edits[i].key, int32(i))
		}
	}
	if b.last != nil {
		before = b.set(key, n)
	}
	b.edits = append(b.edits, edit{key, value, before})
}

// edit is a new value of a key; nil deletes it.
type edit struct {
	key, value []byte
	before     int32 // the edit of the same key before this one; -1: none
}

// mark is how much of an overlay somebody sees: so many edits of each bucket.
type mark [bucketCount]int32

// newOverlay is that of a journal of which no frame was read.
func newOverlay(b binding) *overlay {
	o := &overlay{gen: b.gen, from: b.begin(), end: b.begin(), seq: b.seq}
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

// add takes in the changes of one frame, which ends there.
func (o *overlay) add(list []change, end int64, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range list {
		o.trees[bucketNumber(c.bucket)].add(c.key, c.value)
	}
	o.end, o.seq = end, seq
}

// addFrame takes in the changes of a frame that this process made.
func (o *overlay) addFrame(f *frame, end int64, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range f.spans {
		o.trees[f.spans[i].bucket].add(f.edit(i))
	}
	o.end, o.seq = end, seq
}

// follow takes in what came to another after a mark.
func (o *overlay) follow(other *overlay, m mark) {
	other.mu.RLock()
	defer other.mu.RUnlock()
	for i := range o.trees {
		for _, e := range other.trees[i].edits[m[i]:] {
			o.trees[i].add(e.key, e.value)
		}
	}
	o.end, o.seq = other.end, other.seq
}

// now is all that is there.
func (o *overlay) now() (m mark) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for i := range m {
		m[i] = int32(len(o.trees[i].edits))
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
	i, ok := b.at(key)
	if !ok {
		return nil, false
	}
	for i >= m[bucket] {
		if i = b.edits[i].before; i < 0 {
			return nil, false
		}
	}
	return b.edits[i].value, true
}

// sorted lists the last edits of a bucket as of a mark by key.
func (o *overlay) sorted(bucket int, m *mark) []edit {
	n := m[bucket]
	if n == 0 {
		return nil
	}
	o.mu.RLock()
	kept := o.kept
	edits := o.trees[bucket].edits[:n:n]
	o.mu.RUnlock()
	if kept != nil && kept.bucket == bucket && kept.mark == n {
		return kept.sorted
	}
	list := inOrder(edits, func(a, b *edit) int { return bytes.Compare(a.key, b.key) })
	kept = &listing{bucket: bucket, mark: n, sorted: make([]edit, 0, len(list))}
	for i, e := range list {
		if i+1 == len(list) || !bytes.Equal(e.key, list[i+1].key) {
			kept.sorted = append(kept.sorted, e)
		}
	}
	o.mu.Lock()
	o.kept = kept
	o.mu.Unlock()
	return kept.sorted
}

// length is how many bytes of the journal it is of.
func (o *overlay) length() int64 { return o.end - o.from }

// reserve makes room for as much as another holds.
func (o *overlay) reserve(other *overlay) {
	other.mu.RLock()
	defer other.mu.RUnlock()
	for i := range o.trees {
		o.trees[i].edits = make([]edit, 0, len(other.trees[i].edits))
	}
	o.trees[objectsNumber].byID = newIDMap(other.trees[objectsNumber].byID.ids.Len())
}

// of tells whether it is of the frames that count.
func (o *overlay) of(b binding) bool { return o.gen == b.gen && o.from == b.begin() }

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
		now := objects.Ref{}
		if err == nil && e.value != nil {
			now, err = decodeRef(string(e.key), e.value)
		}
		if err != nil {
			edits = o.sorted(recentNumber, &m)
			break
		}
		if !was.Target.IsZero() && (e.value == nil || !was.Updated.Equal(now.Updated)) {
			edits = append(edits, edit{key: recentKey(was)})
		}
		if e.value != nil {
			edits = append(edits, edit{key: recentKey(now), value: []byte{}})
		}
	}
	for _, e := range edits {
		list = append(list, change{recentBucket, e.key, e.value})
	}
	return list
}

// objects lists the records that were put before a mark, in the order in which they came.
func (o *overlay) objects(m mark) []edit {
	o.mu.RLock()
	defer o.mu.RUnlock()
	n := m[objectsNumber]
	return o.trees[objectsNumber].edits[:n:n]
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
func (l *look) merged(bucket string, from []byte, down bool) iter.Seq2[entry, error] {
	tree := l.scanTree(bucket, from, down)
	if l.over == nil {
		return tree
	}
	edits := l.over.beyond(bucketNumber(bucket), from, down, &l.seen)
	if len(edits) == 0 {
		return tree
	}
	return func(yield func(entry, error) bool) {
		rest := edits
		for e, err := range tree {
			if err != nil {
				yield(e, err)
				return
			}
			n, replaced := upTo(rest, e.key, down)
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
func yieldEdits(edits []edit, yield func(entry, error) bool) bool {
	for _, e := range edits {
		if e.value != nil && !yield(entry{key: e.key, over: e.value}, nil) {
			return false
		}
	}
	return true
}
