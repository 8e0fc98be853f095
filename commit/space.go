package commit

import "github.com/tract-vcs/tract/canon"

// About how many bytes records have beside words, authors and keys. One that is longer
// only costs a copy.
const (
	contentRoom = 64
	originRoom  = 256
	commitRoom  = 160
)

// space is memory in which records lie one behind the other.
type space struct {
	pieces [][]byte // as far as they are full
	now    int      // the one that is being filled
}

// mostPiece is most bytes that are taken at once for records that are shorter.
const mostPiece = 256 << 10

// encoder gives an encoder for a record of about so many bytes.
func (s *space) encoder(about int) canon.Encoder {
	for ; s.now < len(s.pieces); s.now++ {
		if piece := s.pieces[s.now]; cap(piece)-len(piece) >= about {
			return canon.NewEncoder(piece)
		}
	}
	size := about
	switch {
	case s.now == 0: // one commit has three records, and mostly the first is the longest
		size = about + originRoom + commitRoom
	case s.now > 2:
		size = max(about, min(4*cap(s.pieces[s.now-1]), mostPiece))
	}
	s.pieces = append(s.pieces, make([]byte, 0, size))
	return canon.NewEncoder(s.pieces[s.now])
}

// keep keeps a record of the last encoder.
func (s *space) keep(record []byte) []byte {
	n, piece := len(record), s.pieces[s.now]
	if n <= cap(piece)-len(piece) { // else it lies elsewhere
		s.pieces[s.now] = piece[:len(piece)+n]
	}
	return record[:n:n]
}

// reset makes all of it free.
func (s *space) reset() {
	s.now = 0
	for i := range s.pieces {
		s.pieces[i] = s.pieces[i][:0]
	}
}

// slab is memory for things of one kind, in pieces that grow.
type slab[T any] struct {
	pieces [][]T
	piece  int // the one that is being filled
	count  int // of it, that are taken
}

// next is room for one more, which holds anything.
func (s *slab[T]) next() *T {
	const most = 64
	if len(s.pieces) > 0 && s.count == len(s.pieces[s.piece]) {
		s.piece, s.count = s.piece+1, 0
	}
	if s.piece == len(s.pieces) {
		size := 1 // often it is the only one
		if s.piece > 0 {
			size = min(4*len(s.pieces[s.piece-1]), most)
		}
		s.pieces = append(s.pieces, make([]T, size))
	}
	s.count++
	return &s.pieces[s.piece][s.count-1]
}

// reset makes all of it free.
func (s *slab[T]) reset() { s.piece, s.count = 0, 0 }
