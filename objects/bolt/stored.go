package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// unstored leaves out the objects that lie in a pack already. Who puts a small object
// does not ask for that, and what was said before is said again now and then. One that
// is damaged where it lies is laid down anew, and is found there from then on.
func (l *look) unstored(list []objects.Object) ([]objects.Object, error) {
	all, err := l.runs()
	if err != nil || len(list) == 0 {
		return list, err
	}
	ids := make([]objects.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	slices.SortFunc(ids, func(a, b objects.ID) int {
		return cmp.Or(cmp.Compare(binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(b[:])), a.Compare(b))
	})
	stored := map[objects.ID]bool{}
	for _, r := range all.list {
		if err := l.storedIn(r, ids, stored); err != nil {
			return nil, err
		}
	}
	if len(stored) == 0 {
		return list, nil
	}
	return slices.DeleteFunc(list, func(o objects.Object) bool { return stored[o.ID] }), nil
}

// storedIn notes which of the ids, which ascend, lie in a pack that a run names. A run
// that has not many more pieces than there are ids is read from end to end.
func (l *look) storedIn(r run, ids []objects.ID, stored map[objects.ID]bool) error {
	if r.entries/chunkEntries > 2*uint64(len(ids)) {
		for _, id := range ids {
			at, ok, err := l.locateIn(r, id)
			if err == nil && ok {
				err = l.noteStored(at, id, stored)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for entries, err := range l.chunks(r, nil) {
		if err == nil && len(entries) > 0 {
			ids, err = l.storedAmong(r, entries, ids, stored)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storedAmong does it for one piece of a run, and gives the ids that are beyond it.
func (l *look) storedAmong(r run, entries []byte, ids []objects.ID, stored map[objects.ID]bool) ([]objects.ID, error) {
	last := entries[len(entries)-entrySize:][:indexPrefix]
	for ; len(ids) > 0; ids = ids[1:] {
		begin := r.known(ids[0][:indexPrefix])
		if bytes.Compare(begin, last) > 0 {
			break
		}
		at, ok, err := l.among(entries, begin, ids[0])
		if err == nil && ok {
			err = l.noteStored(at, ids[0], stored)
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// noteStored notes an object that is whole where it lies.
func (l *look) noteStored(at place, id objects.ID, stored map[objects.ID]bool) error {
	p, err := l.pack(at.pack)
	if err == nil {
		_, err = l.packed(p, at.slot)
	}
	if err == nil {
		stored[id] = true
	} else if errors.Is(err, errPack) || ofOneObject(err) {
		return nil
	}
	return err
}
