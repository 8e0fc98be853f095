package page

import "github.com/tract-vcs/tract/internal/hugepage"

// Arena is memory for what is read, reused after Reset. A nil arena allocates each piece.
type Arena struct{ Buf []byte }

// Take returns n bytes that are valid until Reset.
func (a *Arena) Take(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	return Take(&a.Buf, n)
}

// Reserve makes room for about so many bytes, which will be taken in pieces.
func (a *Arena) Reserve(n int) {
	a.Buf = make([]byte, 0, min(n+n/16, maxGrowth))
	hugepage.Advise(a.Buf)
}

// maxGrowth is the most elements that an arena allocates at once, unless one piece has more. A
// caller may keep a small piece for long.
const maxGrowth = 8 << 20

// Take returns the next n elements of some memory, which are not zero. Those that were taken
// before stay valid.
func Take[T any](memory *[]T, n int) []T {
	from := len(*memory)
	if cap(*memory)-from < n {
		*memory, from = make([]T, 0, max(n, min(2*cap(*memory), maxGrowth))), 0
		hugepage.Advise(*memory)
	}
	*memory = (*memory)[:from+n]
	return (*memory)[from : from+n : from+n]
}

// Reset makes the memory available again.
func (a *Arena) Reset() { a.Buf = a.Buf[:0] }
