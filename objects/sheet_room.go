package objects

// SheetRoom is memory for what is read of sheets, and for a sheet that is laid, used again
// after a Reset. It is for one goroutine, the sheets in it are not.
type SheetRoom struct {
	sheets []Sheet
	forms  []form
	shapes []shape
	counts []counts
	rows   []Row
	edges  []ID
	laying laying
}

// Reset ends the use of all sheets that were read into the room, and of the one laid.
func (r *SheetRoom) Reset() {
	r.sheets, r.forms, r.shapes, r.counts, r.rows = r.sheets[:0], r.forms[:0], r.shapes[:0], r.counts[:0], r.rows[:0]
	r.edges = r.edges[:0]
}

// Lend lends memory to the body of the next sheet that is laid.
func (r *SheetRoom) Lend(b []byte) { r.laying.lent = b }

// Object is that of a sheet, its edges in the room.
func (r *SheetRoom) Object(s *Sheet, i int) Object { return s.Object(i, &r.edges) }

// The functions that take give room behind what was given before, which stays. A nil room
// gives memory of its own to each.

// takeSheet gives a zero sheet.
func (r *SheetRoom) takeSheet() *Sheet {
	if r == nil {
		return new(Sheet)
	}
	s := &piece(&r.sheets, 1)[0]
	*s = Sheet{}
	return s
}

// takeForms gives room for n forms, which hold anything.
func (r *SheetRoom) takeForms(n int) []form {
	if r == nil {
		return make([]form, n)
	}
	return piece(&r.forms, n)
}

func (r *SheetRoom) takeShapes(n int) []shape {
	if r == nil {
		return make([]shape, n)
	}
	return piece(&r.shapes, n)
}

func (r *SheetRoom) takeCounts(n int) []counts {
	if r == nil {
		return make([]counts, n)
	}
	return piece(&r.counts, n)
}

// takeRows gives room for n rows, and makes some for their edges.
func (r *SheetRoom) takeRows(n int) []Row {
	if r == nil {
		return make([]Row, n)
	}
	if cap(r.edges)-len(r.edges) < 2*n {
		r.edges = make([]ID, 0, max(2*n, 2*cap(r.edges)))
	}
	return piece(&r.rows, n)
}

// piece gives the next n elements of a list. What was given before stays where it is.
func piece[T any](list *[]T, n int) []T {
	from := len(*list)
	if cap(*list)-from < n {
		*list, from = make([]T, 0, max(n, 2*cap(*list))), 0
	}
	*list = (*list)[:from+n]
	return (*list)[from : from+n : from+n]
}
