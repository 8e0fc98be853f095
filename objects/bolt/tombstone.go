package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// A tombstone is a value of the objects bucket that begins with a zero, where the record of
// an object has its kind:
//
//	objects  id -> 0, sealed objects.Tombstone.Record

const tombstone = 0

func encodeTombstone(t objects.Tombstone) []byte {
	return append([]byte{tombstone}, seal(t.ID[:], t.Record())...)
}

func isTombstone(value []byte) bool { return len(value) > 0 && value[0] == tombstone }

// purgedError returns the *objects.PurgedError that readers get in place of the object.
func purgedError(id objects.ID, value []byte) error {
	record, err := unseal(id[:], value[1:])
	if err != nil {
		return &objects.CorruptError{ID: id, Cause: fmt.Errorf("tombstone: %w", err)}
	}
	t, err := objects.ParseTombstone(id, record)
	if err != nil {
		return err
	}
	return &objects.PurgedError{Tombstone: t}
}

// dropTombstones returns the changes that delete the tombstones of objects that were put
// again and go into a pack.
func (l *snapshot) dropTombstones(list []objects.Object) (changes []journal.Change, err error) {
	for i := range list {
		id := list[i].ID
		value, err := l.get(objectsBucket, id[:])
		if err != nil {
			return nil, err
		}
		if isTombstone(value) {
			changes = append(changes, deleteKey(objectsBucket, bytes.Clone(id[:])))
		}
	}
	return changes, nil
}

// erasures returns a number that grows when objects may have been erased: the file was
// replaced, or packs in it were rewritten.
func (s *store) erasures() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

// noteFile returns the number of a file, which is a new one when the file was replaced or
// packs in it were rewritten. The count that the file keeps of both decides: the system may
// give a new file the identity of an old one.
func (s *store) noteFile(info os.FileInfo, before uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.before != before || !os.SameFile(s.file, info) {
		s.file, s.before = info, before
		s.files++
		s.bodies.forget()
	}
	return s.files
}

// kindOfPurged returns the kind of an erased object as the first byte of a record.
func kindOfPurged(e page.Entry) ([]byte, error) {
	value, err := e.Value()
	if err != nil {
		return nil, err
	}
	err = purgedError(objects.ID(e.Key), value)
	if t := (*objects.PurgedError)(nil); errors.As(err, &t) {
		return []byte{byte(t.Kind)}, nil
	}
	return nil, err
}
