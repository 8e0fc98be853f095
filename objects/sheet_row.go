package objects

import "unsafe"

// Row is what is known of an object when the sheet is open. It is three words, each of
// which is written at once: who opens a sheet does little else.
type Row struct {
	piece  uint64 // where its data begins, in the sheet of a commit, of others in the body, and how long it is; 32 bits each
	apart  int    // the first of it in the column of edges, or where that leads if it has no other there
	places uint64 // from above: of the first parent and the first link, -1 elsewhere; of nothing; its form; 16 bits each
}

// How far up in a word the number is that does not lie at its end.
const (
	upperHalf = 32
	linkLane  = 32
	upperLane = 48
)

// Size is how long the data is.
func (r *Row) Size() int { return int(uint32(r.piece)) }

// Parent is the place of the first parent; -1: it is not in the sheet.
func (r *Row) Parent() int { return int(int64(r.places) >> upperLane) }

// Link is the place of what the first link names, as Parent is.
func (r *Row) Link() int { return int(int16(r.places >> linkLane)) }

// Form is the form of the object.
func (r *Row) Form() int { return int(uint16(r.places)) }

// Apart is where the edge leads that is the only one its form does not have; see
// [Sheet.Alone].
func (r *Row) Apart() int { return r.apart }

// Spot is that of a content whose sheet has this body.
func (r *Row) Spot(body uint64) Spot { return Spot{body, r.piece} }

func (r *Row) data() int { return int(r.piece >> upperHalf) }

func (r *Row) setApart(v int) { r.apart = v }

func (r *Row) setParent(at int) { r.places = r.places<<16>>16 | uint64(at)<<upperLane }

func (r *Row) setLink(at int) {
	r.places = r.places&^(1<<upperLane-1<<linkLane) | uint64(uint16(at))<<linkLane
}

// shape is how the rows of a form are made.
type shape struct {
	apart  int    // edges that each has in the column
	places uint64 // those of object 0
	growth uint64 // those of the next, less those of one
	part   uint8
	reach  uint8
	sized  bool
	edges  uint8 // in the column: as below
}

// The edges in the column.
const (
	noEdge    = iota
	oneEdge   // which is neither the first parent nor the first link
	moreEdges // or one of these two
)

// shape is that of the form with a number.
func (f *form) shape(number int) (s shape) {
	s = shape{part: f.part, reach: f.reach, sized: f.sized, apart: int(f.apart)}
	s.places = uint64(number)
	for _, first := range [2]struct{ step, lane uint8 }{{f.parentStep, upperLane}, {f.linkStep, linkLane}} {
		if first.step > 0 {
			s.places -= uint64(first.step) << first.lane
			s.growth += 1 << first.lane
		} else {
			s.places += 0xffff << first.lane
		}
	}
	switch {
	case f.leads || f.apart > 1:
		s.edges = moreEdges
	case f.apart == 1:
		s.edges = oneEdge
	}
	return s
}

// row is that of an object, with the data that follows and what comes before it in the
// columns.
func (s *shape) row(i, data, size, apart int) Row {
	return Row{piece: uint64(data)<<upperHalf | uint64(size), apart: apart, places: s.places + uint64(i)*s.growth}
}

// idsIn is the ids that lie in bytes, one behind the other.
func idsIn(b []byte) []ID {
	return unsafe.Slice((*ID)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/idSize)
}
