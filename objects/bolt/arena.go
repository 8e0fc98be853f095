package bolt

import "github.com/tract-vcs/tract/objects"

// arena is memory for what one look reads of packs, used again for the next. A nil
// one gives memory of its own to each.
type arena struct {
	bytes []byte
	room  objects.SheetRoom
	list  []objects.Object
	at    []int16
}

func (a *arena) reset() {
	a.bytes, a.list, a.at = a.bytes[:0], a.list[:0], a.at[:0]
	a.room.Reset()
}

func (a *arena) takeBytes(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	return take(&a.bytes, n)
}

// resize makes the piece that was given last n bytes long. Where there is room it stays in
// its place.
func (a *arena) resize(b []byte, n int) []byte {
	if a != nil && len(b) > 0 {
		from := len(a.bytes) - len(b)
		if from >= 0 && &a.bytes[from] == &b[0] && n <= cap(a.bytes)-from {
			a.bytes = a.bytes[:from+n]
			return a.bytes[from : from+n : from+n]
		}
	}
	longer := a.takeBytes(n)
	copy(longer, b)
	return longer
}

func (a *arena) sheets() *objects.SheetRoom {
	if a == nil {
		return nil
	}
	return &a.room
}

// takeObjects gives an empty list with room for so many.
func (a *arena) takeObjects(n int) []objects.Object { return take(&a.list, n)[:0] }

// takePlaces gives room for so many places in a sheet.
func (a *arena) takePlaces(n int) []int16 { return take(&a.at, n) }

// take gives the next n elements of a room. What was given before stays where it is.
func take[T any](room *[]T, n int) []T {
	from := len(*room)
	if cap(*room)-from < n {
		*room, from = make([]T, 0, max(n, 2*cap(*room))), 0
	}
	*room = (*room)[:from+n]
	return (*room)[from : from+n : from+n]
}
