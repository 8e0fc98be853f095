package bolt

import (
	"bytes"

	"github.com/tract-vcs/tract/objects"
)

// branch is the edits of one bucket, in the order in which they came.
type branch struct {
	pieces []*[pieceSlots]slot
	count  int32
	last   map[string]*int32 // the last edit of a key; nil: nobody asks for one, or they rise
	byID   *idMap            // the same, where keys are ids
	rising bool              // each key is above the one before it
}

// pieceSlots is how many edits take memory together.
const pieceSlots = 256

// slot is an edit: a change of a frame, which it says where to find without a pointer, so
// that the garbage collector need not look at any of them.
type slot struct {
	frame, before   int32  // the edit of the same key before this one; -1: none
	key, keyEnd     uint32 // in the frame, and so are these:
	value, valueEnd uint32 // 0: the key is deleted
}

// edit is a new value of a key; nil deletes it.
type edit struct {
	key, value []byte
	sound      bool // of an object: it is what this process has hashed
}

// edits is the edits of a bucket as of a mark. They stay as they are.
type edits struct {
	frames []laid
	pieces []*[pieceSlots]slot
	count  int32
}

func (b *branch) slot(i int32) *slot { return &b.pieces[i/pieceSlots][i%pieceSlots] }

func (e *edits) slot(i int32) *slot { return &e.pieces[i/pieceSlots][i%pieceSlots] }

func (c *slot) in(frames []laid) (key, value []byte) {
	b := frames[c.frame].b
	if c.value > 0 {
		value = b[c.value:c.valueEnd:c.valueEnd]
	}
	return b[c.key:c.keyEnd:c.keyEnd], value
}

func (e *edits) at(i int32) edit {
	key, value := e.slot(i).in(e.frames)
	return edit{key: key, value: value}
}

// all lists them in the order in which they came.
func (e *edits) all() []edit {
	list := make([]edit, e.count)
	for i := range list {
		list[i] = e.at(int32(i))
	}
	return list
}

// lastInOrder lists the last of each key by key.
func (e *edits) lastInOrder() []edit {
	list := inOrder(e.all(), func(a, b *edit) int { return bytes.Compare(a.key, b.key) })
	last := list[:0]
	for i := range list {
		if i+1 == len(list) || !bytes.Equal(list[i].key, list[i+1].key) {
			last = append(last, list[i])
		}
	}
	return last
}

// lastByKey lists the last of each key, where the branch knows them; nil: it does not. The
// mutex of the overlay is held.
func (e *edits) lastByKey(b *branch) (list []edit) {
	if b.last == nil || b.byID != nil {
		return nil
	}
	list = make([]edit, 0, len(b.last))
	for _, last := range b.last {
		i := *last
		for i >= e.count {
			i = b.slot(i).before
		}
		if i >= 0 {
			list = append(list, e.at(i))
		}
	}
	return list
}

// edits is those of a bucket as of a mark. mu is held.
func (o *overlay) edits(bucket int, m *mark) edits {
	return edits{o.frames, o.trees[bucket].pieces, m[bucket]}
}

// key is that of an edit. mu is held.
func (o *overlay) key(b *branch, i int32) []byte {
	key, _ := b.slot(i).in(o.frames)
	return key
}

// at gives the last edit of a key. mu is held.
func (o *overlay) at(b *branch, key []byte) (i int32, ok bool) {
	switch {
	case b.rising:
		from, to := int32(0), b.count
		for from < to {
			if mid := (from + to) / 2; bytes.Compare(o.key(b, mid), key) < 0 {
				from = mid + 1
			} else {
				to = mid
			}
		}
		return from, from < b.count && bytes.Equal(o.key(b, from), key)
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

// put takes in an edit. mu is held.
func (o *overlay) put(bucket int, c slot) {
	b, n := &o.trees[bucket], o.trees[bucket].count
	key, _ := c.in(o.frames)
	if b.rising && n > 0 && bytes.Compare(o.key(b, n-1), key) >= 0 {
		b.rising, b.last = false, make(map[string]*int32, 2*n)
		for i := range n {
			b.set(o.key(b, i), i)
		}
	}
	c.before = -1
	if b.last != nil {
		c.before = b.set(key, n)
	}
	if n%pieceSlots == 0 {
		b.pieces = append(b.pieces, new([pieceSlots]slot))
	}
	*b.slot(n) = c
	b.count++
}
