package pack

import (
	"unsafe"

	"github.com/tract-vcs/tract/objects"
)

// row is what a parsed table knows of one object. It has three words, each of which is
// written at once: most of the time of parsing a table goes into its rows.
type row struct {
	piece    uint64 // offset and size of its data, 32 bits each
	explicit int    // its first explicit edge in the column, or the target of that edge if it has no other
	edges    uint64 // from the highest bits: rows of the first parent and of the first link, -1 elsewhere; nothing; its template; 16 bits each
}

// Shifts of the numbers in a word.
const (
	dataShift   = 32
	linkShift   = 32
	parentShift = 48
)

func (r *row) data() int { return int(r.piece >> dataShift) }

func (r *row) size() int { return int(uint32(r.piece)) }

func (r *row) parent() int { return int(int64(r.edges) >> parentShift) }

func (r *row) link() int { return int(int16(r.edges >> linkShift)) }

func (r *row) template() int { return int(uint16(r.edges)) }

func (r *row) setParent(at int) { r.edges = r.edges<<16>>16 | uint64(at)<<parentShift }

func (r *row) setLink(at int) {
	r.edges = r.edges&^(1<<parentShift-1<<linkShift) | uint64(uint16(at))<<linkShift
}

// rowTemplate makes the rows of the objects of a template.
type rowTemplate struct {
	explicit int    // explicit edges of each object
	edges    uint64 // row.edges of object 0
	growth   uint64 // by how much row.edges grows from an object to the next
	part     uint8
	farthest uint8
	sized    bool
	how      uint8 // the explicit edges: one of those below
}

// The explicit edges of an object.
const (
	noEdge    = iota
	oneEdge   // one, neither to the first parent nor of the first link
	moreEdges // several, or one of these two
)

// rows returns the rowTemplate of the template with a number.
func (f *template) rows(number int) rowTemplate {
	s := rowTemplate{part: f.part, farthest: f.farthest, sized: f.sized, explicit: int(f.explicit), edges: uint64(number)}
	for _, first := range [2]struct{ delta, shift uint8 }{{f.parentDelta, parentShift}, {f.linkDelta, linkShift}} {
		if first.delta > 0 {
			s.edges -= uint64(first.delta) << first.shift
			s.growth += 1 << first.shift
		} else {
			s.edges += 0xffff << first.shift
		}
	}
	switch {
	case f.leads || f.explicit > 1:
		s.how = moreEdges
	case f.explicit == 1:
		s.how = oneEdge
	}
	return s
}

// row returns the row of object i, from the offset and size of its data and its first
// explicit edge.
func (s *rowTemplate) row(i, data, size, explicit int) row {
	return row{piece: uint64(data)<<dataShift | uint64(size), explicit: explicit, edges: s.edges + uint64(i)*s.growth}
}

// idsIn returns the adjacent ids that bytes hold, without a copy.
func idsIn(b []byte) []objects.ID {
	return unsafe.Slice((*objects.ID)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/idSize)
}
