package page

import "github.com/tract-vcs/tract/internal/hugepage"

// Arena is memory for what is read, reused after Reset. A nil arena allocates each piece.
type Arena struct{ Buf []byte }

// Take returns n bytes that are valid until Reset.
func (a *Arena) Take(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	return hugepage.Take(&a.Buf, n)
}

// maxReserve is the most bytes that Reserve allocates.
const maxReserve = 8 << 20

// Reserve makes room for about so many bytes, which will be taken in pieces.
func (a *Arena) Reserve(n int) {
	a.Buf = make([]byte, 0, min(n+n/16, maxReserve))
	hugepage.Advise(a.Buf)
}

// Reset makes the memory available again.
func (a *Arena) Reset() { a.Buf = a.Buf[:0] }
