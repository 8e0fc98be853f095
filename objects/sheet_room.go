package objects

// SheetRoom is memory for what is read of sheets, and for a sheet that is laid, used again
// after a Reset. It is for one goroutine, the sheets in it are not.
type SheetRoom struct {
	slots  []slot
	edges  []ID
	data   []byte
	now    Unfolded // in use
	before Unfolded // not any more
	laying laying
}

// Reset ends the use of all sheets that were read into the room, and of the one laid.
func (r *SheetRoom) Reset() {
	r.slots, r.edges, r.data = r.slots[:0], r.edges[:0], r.data[:0]
	if r.now != nil {
		r.now, r.before = nil, r.now
	}
}

// Object is that of a sheet, all of it in the room, into o.
func (r *SheetRoom) Object(s *Sheet, i int, o *Object) error { return s.object(o, i, &r.edges, r) }

// take gives room for n slots; that of what was given before stays. A nil one gives
// memory of its own to each.
func (r *SheetRoom) take(n int) []slot {
	if r == nil {
		return make([]slot, n)
	}
	from := len(r.slots)
	if cap(r.slots)-from < n {
		r.slots, from = make([]slot, 0, max(n, 2*cap(r.slots))), 0
	}
	if r.slots = r.slots[:from+n]; cap(r.edges)-len(r.edges) < 2*n {
		r.edges = make([]ID, 0, max(2*n, 2*cap(r.edges)))
	}
	return r.slots[from : from+n : from+n]
}

// Data is told into pieces of so much, if what it needs is not known: most commits take
// no more than the least.
const (
	dataLeast = 256
	dataPiece = 32 << 10
)

// free gives data with room behind it.
func (r *SheetRoom) free() []byte {
	if r == nil {
		return nil
	}
	if cap(r.data)-len(r.data) < dataLeast {
		r.data = make([]byte, 0, max(dataPiece, 2*cap(r.data)))
	}
	return r.data
}

// keep keeps what was put behind the data.
func (r *SheetRoom) keep(data []byte) []byte {
	n := len(data)
	if r != nil && n <= cap(r.data)-len(r.data) { // else it lies elsewhere
		r.data = r.data[:len(r.data)+n]
	}
	return data[:n:n]
}

// spare gives what a fold may use the memory of, once.
func (r *SheetRoom) spare() (u Unfolded) {
	if r != nil {
		u, r.before = r.before, nil
	}
	return u
}

// note notes what is in use until the next Reset.
func (r *SheetRoom) note(u Unfolded) {
	if r != nil {
		r.now = u
	}
}
