package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// The buckets of a store, and their keys and values:
//
//	meta     "format" -> checksummed record: 1 version
//	         "journal" -> checksummed record: 1 salt, 2 generation, 3 sequence, 4 files
//	         "runs" -> checksummed record: 1 runs of the index, 2 number of the last
//	         "folds" -> checksummed record: 1 which pack was the last one at some times
//	         "purge" -> checksummed record: 1 tombstones of a purge that is not complete
//	heads    pack -> head of a pack
//	bodies   pack -> body of it
//	index    level, run, first 4 bytes of an id -> chunk of the index
//	objects  id -> a tombstone; in the journal, a record of an object that a checkpoint moves into a pack:
//	         kind, varint n, n parents, varint m, m links, data
//	refs     name -> checksummed record: 1 target, 2 version, 3 updated, 4 hash of its newest log entry
//	recent   last moved first (time downwards, name) -> nothing
//	log      seq -> checksummed objects.LogEntry.Record, or several
//	moves    name, 0, seq -> nothing
//
// Numbers in keys are big-endian. An object is checked by its id. A checksummed record begins with 8
// bytes of the BLAKE3 hash of its key and the rest: nothing else would show that it has changed.
const (
	metaBucket = iota
	objectsBucket
	refsBucket
	recentBucket
	logBucket
	movesBucket
	headsBucket
	bodiesBucket
	indexBucket
)

// buckets are the names of the buckets. Their numbers are in the journal and never change.
var buckets = [...]string{"meta", "objects", "refs", "recent", "log", "moves", "heads", "bodies", "index"}

func setKey(bucket int, key, value []byte) journal.Change {
	return journal.Change{Bucket: bucket, Key: key, Value: value}
}

func deleteKey(bucket int, key []byte) journal.Change {
	return journal.Change{Bucket: bucket, Key: key}
}

// formatVersion is the version of the format. Those before it were never released.
const formatVersion = 27

var formatKey = []byte("format")

const checksumSize = 8

func withChecksum(key, record []byte) []byte {
	sum := objects.Hash(key, record)
	return append(sum[:checksumSize:checksumSize], record...)
}

func verifyChecksum(key, value []byte) ([]byte, error) {
	if len(value) < checksumSize {
		return nil, errors.New("wrong checksum")
	}
	if sum := objects.Hash(key, value[checksumSize:]); !bytes.Equal(value[:checksumSize], sum[:checksumSize]) {
		return nil, errors.New("wrong checksum")
	}
	return value[checksumSize:], nil
}

// encodeRecord returns the record that fields writes, with its checksum.
func encodeRecord(key []byte, fields func(r *canonical.Record)) []byte {
	var r canonical.Record
	fields(&r)
	return withChecksum(key, r.Bytes())
}

// decodeRecord reads the fields of a checksummed record.
func decodeRecord(key, value []byte, fields func(r *canonical.Record)) error {
	record, err := verifyChecksum(key, value)
	if err != nil {
		return err
	}
	r := canonical.NewReader(record)
	fields(&r)
	return r.Err()
}

func encodeFormat(version uint64) []byte {
	return encodeRecord(formatKey, func(r *canonical.Record) { r.Uint(1, &version) })
}

func decodeFormat(value []byte) (version uint64, err error) {
	err = decodeRecord(formatKey, value, func(r *canonical.Record) { r.Uint(1, &version) })
	if version > formatVersion {
		return version, nil // a newer format may add fields
	}
	return version, err
}

func encodeObject(o objects.Object) []byte {
	const counts = 1 + 2*binary.MaxVarintLen16 // at most: the kind and the numbers of edges
	return packs.AppendRecord(make([]byte, 0, counts+(len(o.Parents)+len(o.Links))*idSize+len(o.Data)), &o)
}

// decodeObject decodes a record; a tombstone is a PurgedError. The object does not refer to b.
func decodeObject(id objects.ID, b []byte) (objects.Object, error) {
	var edgeBuf []objects.ID
	o, err := decodeShared(id, b, &edgeBuf)
	o.Data = bytes.Clone(o.Data)
	return o, err
}

// decodeShared is decodeObject for a record that nobody changes: the data may be a part of it,
// and the edges are appended to edgeBuf.
func decodeShared(id objects.ID, b []byte, edgeBuf *[]objects.ID) (objects.Object, error) {
	if isTombstone(b) {
		return objects.Object{ID: id}, purgedError(id, b)
	}
	o, err := packs.ParseRecord(b, edgeBuf)
	if err != nil {
		return objects.Object{ID: id}, &objects.CorruptError{ID: id, Cause: err}
	}
	o.ID = id
	return o, nil
}

// refRecord is a ref with the hash of its newest log entry.
type refRecord struct {
	objects.Ref
	entry objects.ID
}

func encodeRef(r refRecord) []byte { return encodeRecord([]byte(r.Name), r.fields) }

// fields writes the fields of the record of a ref, or reads them.
func (r *refRecord) fields(record *canonical.Record) {
	record.Hash(1, (*[idSize]byte)(&r.Target))
	record.Uint(2, &r.Version)
	record.Time(3, &r.Updated)
	record.Hash(4, (*[idSize]byte)(&r.entry))
}

func decodeRef(name string, value []byte) (refRecord, error) {
	r := refRecord{Ref: objects.Ref{Name: name}}
	err := decodeRecord([]byte(name), value, r.fields)
	if err == nil && (r.Target.IsZero() || r.Version == 0) {
		err = errors.New("no target")
	}
	if err == nil && r.entry.IsZero() {
		err = errors.New("no log entry")
	}
	if err != nil {
		return refRecord{}, fmt.Errorf("ref %q: %w", name, err)
	}
	return r, nil
}

func logKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func encodeEntry(e objects.LogEntry) []byte { return withChecksum(logKey(e.Seq), e.Record()) }

// movesKey orders the moves of one ref. No ref name has a zero byte.
func movesKey(name string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(name), 0), seq)
}

// parseMovesKey returns the sequence number of an entry that moved name.
func parseMovesKey(name string, key []byte) (seq uint64, ok bool) {
	rest, ok := bytes.CutPrefix(key, append([]byte(name), 0))
	if !ok || len(rest) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(rest), true
}

// recentKey orders refs by the time of their last move, the newest first, and
// those of one time by name.
func recentKey(r objects.Ref) []byte {
	downwards := uint64(r.Updated.UnixMilli()) ^ 1<<63 ^ ^uint64(0) // signed order, reversed
	return append(binary.BigEndian.AppendUint64(nil, downwards), r.Name...)
}
