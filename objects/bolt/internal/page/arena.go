package page

// Arena is memory for what is read, reused after Reset. A nil arena allocates each piece.
type Arena struct{ Buf []byte }

// Take returns n bytes that are valid until Reset.
func (a *Arena) Take(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	from := len(a.Buf)
	if cap(a.Buf)-from < n {
		a.Buf, from = make([]byte, 0, max(n, 2*cap(a.Buf))), 0
	}
	a.Buf = a.Buf[:from+n]
	return a.Buf[from : from+n : from+n]
}

// Reset makes the memory available again.
func (a *Arena) Reset() { a.Buf = a.Buf[:0] }
