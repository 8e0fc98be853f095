package bolt

import (
	"errors"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// withoutStored removes the objects from a list that a pack has already: whoever puts an
// object does not look for it. An object that is damaged in its pack stays in the list, and
// is found in the new pack from then on. The memory of the list is used again.
func (l *snapshot) withoutStored(list []objects.Object) ([]objects.Object, error) {
	indexed, err := l.indexed(list)
	if err != nil {
		return nil, err
	}
	rest := list[:0]
	for i := range list {
		intact := false
		if indexed[list[i].ID] {
			if intact, err = l.intactInPack(list[i].ID); err != nil {
				return nil, err
			}
		}
		if !intact {
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
	if errors.Is(err, errPack) || isOfOneObject(err) {
		return false, nil
	}
	return ok && err == nil, err
}

// indexed returns which objects may be in packs, by the beginnings of their ids. Another one is in
// none. In the order of the index each chunk of it is read once at most, so that the cost follows the
// list and not the store.
func (l *snapshot) indexed(list []objects.Object) (map[objects.ID]bool, error) {
	ids, found := make([]objects.ID, len(list)), map[objects.ID]bool{}
	for i := range list {
		ids[i] = list[i].ID
	}
	slices.SortFunc(ids, objects.ID.Compare)
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	for _, r := range all.List {
		for _, id := range ids {
			entries, err := l.entriesOf(r, id)
			if err != nil {
				return nil, err
			}
			if len(entries) > 0 {
				found[id] = true
			}
		}
	}
	return found, nil
}

// inNoPack reports whether an object is in the journal or was purged.
func (l *snapshot) inNoPack(id *objects.ID) (bool, error) {
	if l.record(*id) != nil {
		return true, nil
	}
	_, ok, err := l.find(objectsBucket, id[:])
	return ok, err
}
