package bolt

import (
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// deletePacked removes the objects from a list that a pack has intact already: whoever puts an
// object does not look for it. An object that is damaged in its pack stays in the list, and
// is found in the new pack from then on. The memory of the list is used again.
func (l *snapshot) deletePacked(list []objects.Object) ([]objects.Object, error) {
	indexed, err := l.possiblePlaces(list)
	if err != nil {
		return nil, err
	}
	rest := list[:0]
	for i := range list {
		intact, err := l.isNewestIntact(list[i].ID, indexed[list[i].ID])
		if err != nil {
			return nil, err
		}
		if !intact {
			rest = append(rest, list[i])
		}
	}
	return rest, nil
}

// isNewestIntact reports whether the newest place that has an object has it undamaged.
func (l *snapshot) isNewestIntact(id objects.ID, places []place) (ok bool, err error) {
	for i := len(places) - 1; i >= 0 && !ok && err == nil; i-- {
		if ok, err = l.isAt(places[i], id); ok && err == nil {
			_, err = l.objectAt(located{places[i], id})
		}
	}
	if isDamagedOrPurged(err) {
		return false, nil
	}
	return ok && err == nil, err
}

// possiblePlaces returns the places in packs where objects may be, by the beginnings of their ids, those of
// the oldest runs first. An object without one is in none. In the order of the index each chunk of it
// is read once at most, so that the cost follows the list and not the store.
func (l *snapshot) possiblePlaces(list []objects.Object) (map[objects.ID][]place, error) {
	ids, found := make([]objects.ID, len(list)), map[objects.ID][]place{}
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
			for _, e := range entries {
				found[id] = append(found[id], placeOf(e))
			}
		}
	}
	return found, nil
}

// hasRecord reports whether an object is in the journal, or planned, or has a tombstone.
func (l *snapshot) hasRecord(id *objects.ID) (bool, error) {
	if l.journalRecord(*id) != nil {
		return true, nil
	}
	_, ok, err := l.findInFile(objectsBucket, id[:])
	return ok, err
}
