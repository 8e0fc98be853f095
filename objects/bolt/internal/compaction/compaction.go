// Package compaction copies a store into a new file while others write to it: for gc what is
// reachable, packed closely; for a backup everything, as it is stored.
//
// [Mark] finds out what is reachable. A [Copier] copies in rounds: the first copies all there
// is, each of the next what was written meanwhile, which is less each time, and the last one
// what is left when the caller holds the lock of the store. Packs and log entries never change,
// so they are copied in the order of their numbers. Objects in no pack, tombstones and refs do:
// every round looks which of them are new.
package compaction

import (
	"slices"

	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// Source is the store that is copied. Each call reads what is there by then, in pieces between
// which others write. No lock is held while a callback runs, except by View.
type Source interface { //nolint:interfacebloat // one for all that a copy reads
	// View calls f with the packs and the index at one moment. Writers wait for it.
	View(f func(v View) error) error

	// Heads calls f with the head of every pack, ascending.
	Heads(f func(h Head) error) error

	// Packs calls f with the packs behind a number, ascending.
	Packs(after uint32, f func(p Pack) error) error

	// Open parses a pack. The result is valid until the next call.
	Open(p Pack) (Contents, error)

	// Records calls f with the records that wanted accepts; nil: all of them.
	Records(wanted func(id objects.ID, tombstone bool) bool, f func(r Record) error) error

	// Decode returns the object of a record, which is hashed and compared with its id.
	Decode(r Record) (objects.Object, error)

	// Entries calls f with the log entries behind a sequence number, ascending.
	Entries(after uint64, f func(e objects.LogEntry) error) error

	// Refs calls f with every ref.
	Refs(f func(name string, target objects.ID, value []byte) error) error
}

// View is a store at one moment.
type View interface {
	// Locate returns the pack of an object and its row there.
	Locate(id objects.ID) (pack uint32, row int, ok bool, err error)

	// Head returns the head of a pack. It is an error if its checksum is wrong.
	Head(number uint32) (Head, error)

	// Ref returns the value of a ref; nil if it does not exist.
	Ref(name string) ([]byte, error)

	// Object reads an object of a pack and compares it with its id.
	Object(id objects.ID) (objects.Object, error)
}

// Head is a pack without the data of its objects.
type Head struct {
	*pack.Table

	Number uint32
	Others int      // objects that its objects refer to in other packs; [pack.Table.ID] has them after its own
	Purged []uint16 // the rows of purged objects, ascending
}

func (h Head) isPurged(row int) bool {
	_, found := slices.BinarySearch(h.Purged, uint16(row))
	return found
}

// Pack is a pack as it is stored.
type Pack struct {
	Number     uint32
	Head, Body []byte
}

// Contents is a pack whose objects can be read.
type Contents struct {
	Head

	Sound  bool                         // its checksums are right
	Dense  bool                         // it is stored as closely as the target stores packs
	Object func(row int) objects.Object // not compared with its id
}

// Record is an object in no pack, or a tombstone, as it is stored.
type Record struct {
	ID        objects.ID
	Tombstone bool
	Journal   bool // it is not in the file yet
	Value     []byte
}

// Target is the new file.
type Target interface { //nolint:interfacebloat // one for all that a copy writes
	AddPack(p Pack) error                   // as it is; for gc under the next number
	AddObjects(list []objects.Object) error // as new packs
	SetRecord(r Record) error               // perhaps in the place of a tombstone
	DeleteRecord(id objects.ID) error       // a tombstone
	AddEntry(e objects.LogEntry) error      // behind the last one
	SetRef(name string, value []byte) error // nil: deletes it
	Write() error                           // what was added so far
}
