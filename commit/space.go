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
