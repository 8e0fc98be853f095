package pack

import (
	"errors"
	"unsafe"

	"github.com/tract-vcs/tract/objects"
)

// Table describes the objects of a pack without the data of most of them: their ids,
// kinds, edges and data sizes. The data of commits is part of the table; the data of all
// other objects is in the body of the pack. What many objects have in common, a template,
// is stored once. [EncodeTable] makes a table, [ParseTable] reads one.
//
// An object is known by its row, from 0 on; it comes after those objects of the table
// that it refers to. A table hashes nothing: it is as good as the bytes it was made from.
// It may be used by any number of goroutines at once.
type Table struct {
	n               int          // objects
	ids             []objects.ID // of the objects, then of other objects that they refer to
	templates       []template
	rows            []row
	explicitTargets column // of the edges whose delta is 0: indexes into ids
	data            []byte // of commits
	contentSize     int    // bytes of the body that are data of contents
	bodySize        int
}

// template is what several objects have in common.
type template struct {
	kind           objects.Kind
	sized          bool   // their data is not empty: each has an entry in the column of sizes
	parents, links int    // how many
	deltas         []byte // of each edge: how many rows before the object its target is; 0: it is an explicit one
}

// row is what a parsed table knows of one object.
type row struct {
	from, size    uint32 // of its data
	firstExplicit int32  // its first one in the column of explicit targets
	parent, link  int16  // rows of the first parent and of the first link; -1: the table does not have it
	template      uint16
}

// Where the data of an object is. The contents of a pack are adjacent, because similar
// data compresses better.
const (
	sectionTable   = iota // commits: in the table
	sectionContent        // contents: in the body
	sectionOther          // all others: in the body, after the contents
	sections
)

func sectionOf(k objects.Kind) uint8 {
	switch k {
	case objects.KindCommit:
		return sectionTable
	case objects.KindContent:
		return sectionContent
	}
	return sectionOther
}

// MaxObjects is the most objects that a table may have.
const MaxObjects = 1 << 12

const idSize = len(objects.ID{})

// idsWithoutCopy returns the adjacent ids that bytes hold. They share the memory of b.
func idsWithoutCopy(b []byte) []objects.ID {
	return unsafe.Slice((*objects.ID)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/idSize)
}

var errTable = errors.New("invalid pack table")

// Len returns the number of objects.
func (t *Table) Len() int { return t.n }

// BodySize returns how many bytes the body of the pack has.
func (t *Table) BodySize() int { return t.bodySize }

// ID returns the id of an object of the table, or of another object by its number. It is
// valid as long as the table.
func (t *Table) ID(i int) *objects.ID { return &t.ids[i] }

// Kind returns the kind of an object.
func (t *Table) Kind(i int) objects.Kind { return t.templates[t.rows[i].template].kind }

// Data returns the offset and the size of the data of an object: in the table for a
// commit, in the body for all others.
func (t *Table) Data(i int) (from, size int) {
	r := &t.rows[i]
	return int(r.from), int(r.size)
}

// Parent returns the row of the first parent, or -1 if the table does not have it.
func (t *Table) Parent(i int) int { return int(t.rows[i].parent) }

// Link returns the row of what the first link refers to, or -1 if the table does not
// have it.
func (t *Table) Link(i int) int { return int(t.rows[i].link) }

// Edges returns the parents and links of an object. They are appended to room, whose
// memory they may share.
func (t *Table) Edges(i int, room *[]objects.ID) (parents, links []objects.ID) {
	f := &t.templates[t.rows[i].template]
	n := len(f.deltas)
	if n == 0 {
		return nil, nil
	}
	if cap(*room)-len(*room) < n {
		*room = make([]objects.ID, 0, max(n, edgeRoom, 2*cap(*room)))
	}
	from, nextExplicit := len(*room), int(t.rows[i].firstExplicit)
	for _, delta := range f.deltas {
		*room = append(*room, t.ids[t.edgeTarget(i, delta, &nextExplicit)])
	}
	middle, end := from+f.parents, from+n
	if f.parents > 0 {
		parents = (*room)[from:middle:middle]
	}
	if f.links > 0 {
		links = (*room)[middle:end:end]
	}
	return parents, links
}

// EdgeNumbers appends to list the numbers of what an object refers to, its parents first:
// the row of an object of the table, or a number from Len on. [Table.ID] returns the id of
// either.
func (t *Table) EdgeNumbers(i int, list []int) []int {
	nextExplicit := int(t.rows[i].firstExplicit)
	for _, delta := range t.templates[t.rows[i].template].deltas {
		list = append(list, t.edgeTarget(i, delta, &nextExplicit))
	}
	return list
}

// edgeTarget returns the index in ids of what object i refers to by an edge. nextExplicit is the index of
// the next explicit target.
func (t *Table) edgeTarget(i int, delta byte, nextExplicit *int) int {
	if delta > 0 {
		return i - int(delta)
	}
	to := t.explicitTargets.at(*nextExplicit)
	*nextExplicit++
	return to
}

// edgeRoom is for how many ids Edges allocates memory when there is none.
const edgeRoom = 256

// Object returns an object; its edges are as those of Edges. Only a commit has its data,
// which is a slice of the table.
func (t *Table) Object(i int, room *[]objects.ID) objects.Object {
	o := objects.Object{ID: t.ids[i], Kind: t.Kind(i)}
	o.Parents, o.Links = t.Edges(i, room)
	if o.Kind == objects.KindCommit {
		from, size := t.Data(i)
		o.Data = t.data[from : from+size : from+size]
	}
	return o
}

// AppendChain appends to list the commit of a row, its first parent, and so on, as far as
// the table has them: at most limit commits, if it is over 0. To spots it appends where
// the content of each is, in a body with some number. The edges are in the arena.
func (t *Table) AppendChain(list []objects.Object, spots []objects.Locator, row, limit int, body uint64, a *Arena) ([]objects.Object, []objects.Locator) {
	for ; row >= 0; row = t.Parent(row) {
		list = append(list, t.Object(row, &a.edges))
		spot := objects.Locator{}
		if k := t.Link(row); k >= 0 && t.Kind(k) == objects.KindContent {
			from, size := t.Data(k)
			spot = objects.Locator{body, uint64(from)<<32 | uint64(size)}
		}
		spots = append(spots, spot)
		limit--
		if limit == 0 {
			break
		}
	}
	return list, spots
}

// column is numbers of the same width, stored by byte: the lowest byte of each number,
// then the next byte of each, and so on. That compresses better than one number after
// the other. No number has more than 32 bits.
type column struct {
	bytes    []byte
	n, width int
}

func (c *column) at(i int) (v int) {
	for k := range c.width {
		v |= int(c.bytes[k*c.n+i]) << (8 * k)
	}
	return v
}
