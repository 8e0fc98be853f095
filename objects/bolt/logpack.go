package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// An entry of the ref log is a value of its own in the journal. A checkpoint, and gc, store many
// in one value:
//
//	log      seq of the first -> checksummed: codec (1: zstd), then in zstd a varint length
//	         and the record of each entry, the oldest first. A move of a ref that an
//	         earlier entry of the value moves too has no Prev: it is the hash of that.
//	moves    name, 0, seq of the first -> nothing: one of them moves the ref
//
// A single entry begins with the tag of its sequence number, which is 8.
const (
	logEntries = 256  // most in one value
	logMoves   = 1024 // moves of refs after which a value is full
)

// encodeEntries encodes entries that ascend by Seq into one value.
func encodeEntries(list []objects.LogEntry) (key, value []byte) {
	key = logKey(list[0].Seq)
	if len(list) == 1 { // it may be of any size
		return key, encodeEntry(list[0])
	}
	var b []byte
	moved := map[string]bool{}
	for _, e := range list {
		e.Refs = slices.Clone(e.Refs)
		for i := range e.Refs {
			if u := &e.Refs[i]; moved[u.Name] {
				u.Prev = objects.ID{}
			}
		}
		for i := range e.Refs {
			moved[e.Refs[i].Name] = true
		}
		record := e.Record()
		b = append(binary.AppendUvarint(b, uint64(len(record))), record...)
	}
	return key, withChecksum(key, compression.CompressFast([]byte{byte(codecZstd)}, b))
}

// decodeEntries returns the entries under a key, the oldest first.
func decodeEntries(key, value []byte) (list []objects.LogEntry, err error) {
	record, err := verifyChecksum(key, value)
	switch {
	case err != nil:
	case len(record) == 0 || codec(record[0]) != codecZstd:
		var e objects.LogEntry
		e, err = objects.ParseLogEntry(record)
		list = []objects.LogEntry{e}
	default:
		var b []byte
		if b, err = inflate(nil, record[1:]); err == nil {
			list, err = parseEntries(b)
		}
	}
	if err == nil && !bytes.Equal(key, logKey(list[0].Seq)) {
		err = fmt.Errorf("it holds entry %d", list[0].Seq)
	}
	if err != nil {
		return nil, fmt.Errorf("log entry %x: %w", key, err)
	}
	return list, nil
}

// parseEntries reads the records of a value with several entries.
func parseEntries(b []byte) (list []objects.LogEntry, err error) {
	newest := map[string]objects.ID{}
	for seq := uint64(0); len(b) > 0; {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errors.New("it is cut off")
		}
		e, err := objects.ParseLogEntry(b[n : n+int(size)])
		if err != nil {
			return nil, err
		}
		if e.Seq <= seq || len(list) == logEntries {
			return nil, fmt.Errorf("entry %d comes after entry %d", e.Seq, seq)
		}
		for i := range e.Refs {
			u := &e.Refs[i]
			prev, ok := newest[u.Name]
			if ok && !u.Prev.IsZero() {
				return nil, fmt.Errorf("entry %d has a link of %q that follows from entry %s", e.Seq, u.Name, prev.Short())
			}
			if ok {
				u.Prev = prev
			}
		}
		e = objects.NewLogEntry(e.Seq, e.Note, e.Refs)
		for i := range e.Refs {
			newest[e.Refs[i].Name] = e.Hash
		}
		list, seq, b = append(list, e), e.Seq, b[n+int(size):]
	}
	if len(list) == 0 {
		return nil, errors.New("no entries")
	}
	return list, nil
}

// moveKeysOf returns the keys of the index by name for the entries of one value.
func moveKeysOf(list []objects.LogEntry) (keys [][]byte) {
	seen := map[string]bool{}
	for _, e := range list {
		for _, u := range e.Refs {
			if !seen[u.Name] {
				seen[u.Name] = true
				keys = append(keys, movesKey(u.Name, list[0].Seq))
			}
		}
	}
	return keys
}

// logValueBuilder collects log entries for one value.
type logValueBuilder struct {
	list  []objects.LogEntry
	moves int
}

// add adds the next entry. When the value is full it returns the changes that write it.
func (r *logValueBuilder) add(e objects.LogEntry) (list []journal.Change) {
	if len(r.list) == logEntries || r.moves >= logMoves {
		list = r.flush()
	}
	r.list, r.moves = append(r.list, e), r.moves+len(e.Refs)
	return list
}

// flush returns the changes that write the collected entries.
func (r *logValueBuilder) flush() []journal.Change {
	if len(r.list) == 0 {
		return nil
	}
	key, value := encodeEntries(r.list)
	list := []journal.Change{setKey(logBucket, key, value)}
	for _, key := range moveKeysOf(r.list) {
		list = append(list, setKey(movesBucket, key, []byte{}))
	}
	r.list, r.moves = r.list[:0], 0
	return list
}

// packLog returns the changes that write log entries of the journal, the oldest first, many in
// one value.
func packLog(log []memtable.Entry) (list []journal.Change, err error) {
	var run logValueBuilder
	for _, c := range log {
		entries, err := decodeEntries(c.Key, c.Value)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			list = append(list, run.add(e)...)
		}
	}
	return append(list, run.flush()...), nil
}
