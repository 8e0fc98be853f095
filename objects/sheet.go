package objects

import (
	"bytes"
	"errors"
)

// A Sheet is many objects laid together without what they say: their ids, what they
// are, where they lead, and how long their data is. It has the data of commits too.
// What many have in common, a form, is told once; of each object there is left what
// is its own. So a sheet is short, and who goes through it need not make an object
// of each. [LaySheet] makes one, [OpenSheet] reads it.
//
// The objects have places from 0 on, each behind those in the sheet that it leads
// to. A sheet is as good as the bytes it was made of: it hashes nothing. It may be
// used by any number of goroutines at once.
type Sheet struct {
	n     int
	ids   []ID // of the objects, and then of what else they lead to
	forms []form
	rows  []Row
	apart column // edges that no form has: places in ids
	data  []byte
	words int // of the body, what contents have
	body  int
}

// form is what some objects have in common.
type form struct {
	kind           Kind
	part           uint8 // where their data lies: one of those below
	sized          bool  // each has a size: not 0
	reach          uint8 // the longest step
	parentStep     uint8 // of the first parent; 0: it is in the column, or there is none
	linkStep       uint8 // of the first link, too
	leads          bool  // the first parent or the first link is in the column
	parents, links int32
	apart          int32  // edges that are in the column
	before         int32  // of these, parents
	steps          []byte // of each edge: how far back it leads; 0: it is in the column
}

// Where data lies. What was said lies together: who compresses it finds more alike.
const (
	inSheet  = iota // of commits
	inWords         // of contents, in the body
	inOthers        // of all else, in the body behind the words
	parts
)

func partOf(k Kind) uint8 {
	switch k {
	case KindCommit:
		return inSheet
	case KindContent:
		return inWords
	}
	return inOthers
}

// SheetObjects is most objects that a sheet holds.
const SheetObjects = 1 << 12

const idSize = len(ID{})

var errSheet = errors.New("a sheet makes no sense")

// Len is how many objects there are.
func (s *Sheet) Len() int { return s.n }

// Body is how long the data is that the sheet is without.
func (s *Sheet) Body() int { return s.body }

// ID is the id with a place: of an object, or of what else they lead to. It stays good as
// long as the sheet.
func (s *Sheet) ID(i int) *ID { return &s.ids[i] }

// Kind is what an object is.
func (s *Sheet) Kind(i int) Kind { return s.forms[s.Form(i)].kind }

// Data says where the data of an object lies: that of commits in the sheet, that of
// others in the body.
func (s *Sheet) Data(i int) (from, size int) {
	in := &s.rows[i]
	return in.data(), in.Size()
}

// Rows are those of all objects. They stay good as long as the sheet.
func (s *Sheet) Rows() []Row { return s.rows }

// Parent is the place of the first parent; -1: it is not in the sheet.
func (s *Sheet) Parent(i int) int { return s.rows[i].Parent() }

// Link is the place of what the first link names, as Parent is.
func (s *Sheet) Link(i int) int { return s.rows[i].Link() }

// Degree is how many parents and links the objects of a form have.
func (s *Sheet) Degree(form int) (parents, links int) {
	f := &s.forms[form]
	return int(f.parents), int(f.links)
}

// Place is where in the sheet the id is of what an object leads to, for [Sheet.ID]: k
// counts its parents and then its links.
func (s *Sheet) Place(i, k int) int {
	in := &s.rows[i]
	f := &s.forms[in.Form()]
	if step := int(f.steps[k]); step > 0 {
		return i - step
	}
	at := in.Apart()
	if f.apart == 1 {
		return at
	}
	for _, step := range f.steps[:k] {
		if step == 0 {
			at++
		}
	}
	return int(s.apart.at(at))
}

// Alone is which edge of the objects of a form, as Place counts them, is the only one
// that the form does not have; -1: there are none, or more.
func (s *Sheet) Alone(form int) int {
	if f := &s.forms[form]; f.apart == 1 {
		return bytes.IndexByte(f.steps, 0)
	}
	return -1
}

// Under is the first parent of an object; zero: it has none.
func (s *Sheet) Under(i int) (id ID) {
	if n, _ := s.Degree(s.Form(i)); n > 0 {
		id = *s.ID(s.Place(i, 0))
	}
	return id
}

// Edges adds the parents and links of an object to a slice that they may share.
func (s *Sheet) Edges(i int, room *[]ID) (parents, links []ID) {
	in := &s.rows[i]
	f := &s.forms[in.Form()]
	n := len(f.steps)
	if n == 0 {
		return nil, nil
	}
	if cap(*room)-len(*room) < n {
		*room = make([]ID, 0, max(n, sheetRoom))
	}
	from, at := len(*room), in.Apart()
	for _, step := range f.steps {
		switch {
		case step > 0:
			*room = append(*room, *s.ID(i - int(step)))
		case f.apart == 1:
			*room = append(*room, *s.ID(at))
		default:
			*room = append(*room, *s.ID(int(s.apart.at(at))))
			at++
		}
	}
	middle, end := from+int(f.parents), from+n
	if f.parents > 0 {
		parents = (*room)[from:middle:middle]
	}
	if f.links > 0 {
		links = (*room)[middle:end:end]
	}
	return parents, links
}

// sheetRoom is how many ids room is made for when there is none.
const sheetRoom = 256

// Object gives an object, its edges in room that they may share. Only commits have
// their data, which is a piece of the sheet.
func (s *Sheet) Object(i int, room *[]ID) Object {
	o := Object{ID: *s.ID(i), Kind: s.Kind(i)}
	o.Parents, o.Links = s.Edges(i, room)
	if o.Kind == KindCommit {
		from, size := s.Data(i)
		o.Data = s.data[from : from+size : from+size]
	}
	return o
}

// Forms is how many forms the objects have.
func (s *Sheet) Forms() int { return len(s.forms) }

// Form is the form of an object.
func (s *Sheet) Form(i int) int { return s.rows[i].Form() }

// KindOf is what the objects of a form are.
func (s *Sheet) KindOf(form int) Kind { return s.forms[form].kind }

// column is numbers of the same width: the lowest byte of each, then the next of each,
// and so on. So laid they are short when they are compressed.
type column struct {
	bytes    []byte
	n, width int
}

func (c *column) at(i int) uint64 {
	switch c.width {
	case 0:
		return 0
	case 1:
		return uint64(c.bytes[i])
	case 2:
		return uint64(c.bytes[i]) | uint64(c.bytes[c.n+i])<<8
	}
	v := uint64(0)
	for k := range c.width {
		v |= uint64(c.bytes[k*c.n+i]) << (8 * k)
	}
	return v
}

// some puts the numbers from a place on into a list. None of them is over 32 bits.
func (c *column) some(list []uint32, from int) {
	if c.width == 0 {
		clear(list)
		return
	}
	low := c.bytes[from:][:len(list)]
	if c.width == 2 {
		high := c.bytes[c.n+from:][:len(list)]
		for i := range list {
			list[i] = uint32(low[i]) | uint32(high[i])<<8
		}
		return
	}
	for i, b := range low {
		list[i] = uint32(b)
	}
	for k := 1; k < c.width; k++ {
		for i, b := range c.bytes[k*c.n+from:][:len(list)] {
			list[i] |= uint32(b) << (8 * k)
		}
	}
}

// between is how many numbers there are from one place to another: at most countEvery,
// and none that are not there.
func (c *column) between(from, to int) int {
	return max(0, min(to-from, c.n-from, countEvery))
}
