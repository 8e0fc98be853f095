package bolt

import "github.com/tract-vcs/tract/objects"

// idMap gives a number for each id.
type idMap struct {
	ids     objects.IDTable
	numbers []int32
}

func newIDMap(about int) *idMap {
	return &idMap{objects.NewIDTable(about), make([]int32, 0, about)}
}

func (m *idMap) get(id *objects.ID) (n int32, ok bool) {
	at, ok := m.ids.Find(*id)
	if ok {
		n = m.numbers[at]
	}
	return n, ok
}

// swap gives an id a number, and tells which it had.
func (m *idMap) swap(id *objects.ID, n int32) (before int32, had bool) {
	at, fresh := m.ids.Add(*id)
	if fresh {
		m.numbers = append(m.numbers, n)
		return 0, false
	}
	before, m.numbers[at] = m.numbers[at], n
	return before, true
}
