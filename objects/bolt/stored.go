package bolt

import (
	"errors"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// unstored leaves out the objects that lie in a pack already. Who puts a small object
// does not ask for that, and what was said before is said again now and then. One that
// is damaged where it lies is laid down anew, and is found there from then on.
func (l *look) unstored(list []objects.Object) ([]objects.Object, error) {
	byID := make([]int, len(list)) // in the order of the index, so that its pages come one after the other
	for i := range byID {
		byID[i] = i
	}
	slices.SortFunc(byID, func(a, b int) int { return list[a].ID.Compare(list[b].ID) })
	stored := make([]bool, len(list))
	some := false
	for _, i := range byID {
		id := list[i].ID
		at, ok, err := l.locate(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		p, err := l.pack(at.pack)
		if err == nil {
			_, err = l.packed(p, at.slot)
		}
		switch {
		case err == nil:
			stored[i], some = true, true
		case !errors.Is(err, errPack) && !ofOneObject(err):
			return nil, err
		}
	}
	if !some {
		return list, nil
	}
	kept := list[:0]
	for i, o := range list {
		if !stored[i] {
			kept = append(kept, o)
		}
	}
	return kept, nil
}
