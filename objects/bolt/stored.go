package bolt

import (
	"errors"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// withoutStored removes the objects from a list that a pack has already: whoever puts a small
// object does not look for it. An object that is damaged in its pack stays in the list, and
// is found in the new pack from then on. The memory of the list is used again.
func (l *snapshot) withoutStored(list []objects.Object) ([]objects.Object, error) {
	s := sortIDs(list)
	if err := l.findPacked(s); err != nil {
		return nil, err
	}
	rest := list[:0]
	for i := range list {
		whole := false
		if s.seen[i] {
			var err error
			if whole, err = l.intactInPack(list[i].ID); err != nil {
				return nil, err
			}
		}
		if !whole {
			rest = append(rest, list[i])
		}
	}
	return rest, nil
}

// intactInPack reports whether a pack has an object undamaged.
func (l *snapshot) intactInPack(id objects.ID) (bool, error) {
	at, ok, err := l.locate(id)
	if ok && err == nil {
		var p *pack
		if p, err = l.pack(at.pack); err == nil {
			_, err = l.readPacked(p, at.slot)
		}
	}
	if errors.Is(err, errPack) || ofOneObject(err) {
		return false, nil
	}
	return ok && err == nil, err
}

// sorted is the objects of a list in the order of their ids, which is that of the index.
type sorted struct {
	list  []objects.Object
	order []int  // places in the list
	again []bool // by place: the same id came before
	seen  []bool // by place: it may be in the store
}

func sortIDs(list []objects.Object) *sorted {
	s := &sorted{list: list, order: make([]int, len(list)), again: make([]bool, len(list)), seen: make([]bool, len(list))}
	for i := range s.order {
		s.order[i] = i
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return list[a].ID.Compare(list[b].ID) })
	for k := 1; k < len(list); k++ {
		s.again[s.order[k]] = list[s.order[k]].ID == list[s.order[k-1]].ID
	}
	return s
}

// findStored finds out which objects may be in the store. One that is not seen is not there.
func (l *snapshot) findStored(s *sorted) error {
	if err := l.findPacked(s); err != nil {
		return err
	}
	for _, i := range s.order {
		id := s.list[i].ID
		_, loose, err := l.find(objectsBucket, id[:])
		if err != nil {
			return err
		}
		s.seen[i] = s.seen[i] || loose || l.record(id) != nil
	}
	return nil
}

// findPacked finds out which objects may be in packs, by the beginning of their ids. In the order of the index each chunk of
// it is read once at most, so that the cost follows the list and not the store.
func (l *snapshot) findPacked(s *sorted) error {
	all, err := l.runs()
	if err != nil {
		return err
	}
	for _, r := range all.List {
		for _, i := range s.order {
			entries, err := l.entriesOf(r, s.list[i].ID)
			if err != nil {
				return err
			}
			s.seen[i] = s.seen[i] || len(entries) > 0
		}
	}
	return nil
}
