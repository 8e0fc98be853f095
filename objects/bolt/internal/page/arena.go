package page

import "github.com/tract-vcs/tract/internal/hugepage"

// Arena is memory for what is read, reused after Reset. A nil arena allocates each piece.
type Arena struct {
	Buf      []byte
	reserved [][]byte // the next values of Buf
}

// Take returns n bytes that are valid until Reset.
func (a *Arena) Take(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	if last := len(a.reserved) - 1; last >= 0 && cap(a.Buf)-len(a.Buf) < n {
		a.Buf, a.reserved = a.reserved[last], a.reserved[:last]
	}
	return hugepage.Take(&a.Buf, n)
}

// reservedSize is the most bytes of one piece of memory that Reserve allocates. A reference to a part of
// a piece keeps the whole piece in memory.
const reservedSize = 8 << 20

// Reserve makes room for about so many bytes, which will be taken in pieces. All of it is allocated
// at once, so that the garbage collector runs now, and not several times while the memory is filled.
func (a *Arena) Reserve(n int) {
	for n += n / 16; n > 0; n -= reservedSize {
		piece := make([]byte, 0, min(n, reservedSize))
		hugepage.Advise(piece)
		a.reserved = append(a.reserved, piece)
	}
}

// Reset makes the memory available again.
func (a *Arena) Reset() { a.Buf = a.Buf[:0] }
