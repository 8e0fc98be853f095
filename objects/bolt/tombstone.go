package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// A tombstone is a value of the objects bucket that begins with a zero, where the record of
// an object in the journal has its kind:
//
//	objects  id -> 0, checksummed objects.Tombstone.Record

const tombstone = 0

func encodeTombstone(t objects.Tombstone) []byte {
	return append([]byte{tombstone}, withChecksum(t.ID[:], t.Record())...)
}

func isTombstone(value []byte) bool { return len(value) > 0 && value[0] == tombstone }

// decodeTombstone decodes the tombstone of an object.
func decodeTombstone(id objects.ID, value []byte) (objects.Tombstone, error) {
	record, err := []byte(nil), errors.New("it does not begin as one")
	if isTombstone(value) {
		record, err = verifyChecksum(id[:], value[1:])
	}
	if err != nil {
		return objects.Tombstone{}, &objects.CorruptError{ID: id, Cause: fmt.Errorf("tombstone: %w", err)}
	}
	return objects.ParseTombstone(id, record)
}

// purgedError returns the *objects.PurgedError that readers get in place of the object.
func purgedError(id objects.ID, value []byte) error {
	t, err := decodeTombstone(id, value)
	if err != nil {
		return err
	}
	return &objects.PurgedError{Tombstone: t}
}

// tombstoneDeletions returns the changes that delete the tombstones of objects that were put
// again.
func (l *snapshot) tombstoneDeletions(list []objects.Object) (changes []journal.Change, err error) {
	for i := range list {
		id := &list[i].ID
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

// purges returns a number that grows when objects may have been purged: the file was
// replaced, or packs in it were rewritten.
func (s *store) purges() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fileNumber
}

// updateFileNumber returns the number of the file that was opened last, which is a new one when the file was
// replaced or packs in it were rewritten. The count that the file keeps of both decides: the system may give
// a new file the identity of an old one.
func (s *store) updateFileNumber(info os.FileInfo, fileChanges uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fileInfo == nil || s.fileChanges != fileChanges || !os.SameFile(s.fileInfo, info) {
		s.fileInfo, s.fileChanges = info, fileChanges
		s.fileNumber++
		s.bodies.clear()
	}
	return s.fileNumber
}
