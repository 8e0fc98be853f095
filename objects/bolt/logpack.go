package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// The entries of the ref log that a fold writes lie together if they are many, and all
// of them when a store is packed closely. Each costs a third of what it does alone:
//
//	log      seq -> sealed: codec (1: zstd), then in zstd for each entry the length
//	         of its record, a varint, and the record. All but the first are without
//	         the hash of the entry before, which is there to be hashed
//	moves    name, 0, seq of the first -> nothing: one of them moves the ref
//
// A lone entry begins with the tag of its sequence, which is 8.
const (
	logEntries = 256      // most that lie together
	logBytes   = 64 << 10 // of their records
	logFew     = 16       // fewer are left alone when the journal is folded
)

// encodeEntries makes one key and value of entries that follow one another.
func encodeEntries(list []objects.LogEntry) (key, value []byte) {
	if len(list) == 1 { // it may be of any size
		return logKey(list[0].Seq), encodeEntry(list[0])
	}
	var all []byte
	for i, e := range list {
		if i > 0 {
			e.Prev = objects.ID{}
		}
		record := e.Record()
		all = append(binary.AppendUvarint(all, uint64(len(record))), record...)
	}
	key = logKey(list[0].Seq)
	return key, seal(key, quickly().EncodeAll(all, []byte{byte(codecZstd)}))
}

// decodeEntries gives the entries that lie under a key: one, or some that follow one
// another.
func decodeEntries(key, value []byte) (list []objects.LogEntry, err error) {
	record, err := unseal(key, value)
	if err == nil {
		if len(record) == 0 || codec(record[0]) != codecZstd {
			list, err = appendEntry(nil, record)
		} else {
			list, err = openEntries(record[1:])
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

func openEntries(b []byte) (list []objects.LogEntry, err error) {
	if b, err = inflate(nil, nil, b); err == nil && len(b) == 0 {
		err = errors.New("no entries")
	}
	for err == nil && len(b) > 0 {
		n, at, ok := varint(b, 0)
		if !ok || n > len(b)-at {
			return nil, errors.New("an entry is cut off")
		}
		list, err = appendEntry(list, b[at:at+n])
		b = b[at+n:]
	}
	return list, err
}

// appendEntry reads the record of an entry that follows others.
func appendEntry(list []objects.LogEntry, record []byte) ([]objects.LogEntry, error) {
	e, err := objects.ParseLogEntry(record)
	if err != nil {
		return nil, err
	}
	if n := len(list); n > 0 {
		last := list[n-1]
		if e.Seq != last.Seq+1 || !e.Prev.IsZero() {
			return nil, fmt.Errorf("entry %d lies behind entry %d", e.Seq, last.Seq)
		}
		e = objects.NewLogEntry(last, e.Note, e.Refs)
	}
	return append(list, e), nil
}

// movesOf gives the keys of the list by name for entries that lie together.
func movesOf(list []objects.LogEntry) (keys [][]byte) {
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

// entryRun gathers entries that will lie together.
type entryRun struct {
	list []objects.LogEntry
	size int
}

// add takes the next entry. It gives the changes that write those before it when they
// are enough.
func (r *entryRun) add(e objects.LogEntry) (list []change) {
	size := roughSize(e)
	if len(r.list) == logEntries || r.size+size > logBytes {
		list = r.flush()
	}
	r.list, r.size = append(r.list, e), r.size+size
	return list
}

// roughSize is about as long as the record of an entry.
func roughSize(e objects.LogEntry) int {
	n := 64 + len(e.Note.Author) + len(e.Note.Command)
	for _, u := range e.Refs {
		n += 2*(idSize+2) + 4 + len(u.Name)
	}
	return n
}

// flush gives the changes that write the entries that are gathered.
func (r *entryRun) flush() []change {
	if len(r.list) == 0 {
		return nil
	}
	key, value := encodeEntries(r.list)
	list := []change{{logBucket, key, value}}
	for _, key := range movesOf(r.list) {
		list = append(list, change{movesBucket, key, []byte{}})
	}
	*r = entryRun{}
	return list
}

// layLog has the entries of the log lie together that a fold writes. Few stay as they
// are.
func (l *look) layLog(list []change) ([]change, error) {
	var entries []objects.LogEntry
	rest := make([]change, 0, len(list))
	for _, c := range list {
		switch c.bucket {
		case logBucket:
			some, err := decodeEntries(c.key, c.value)
			if err != nil {
				return nil, err
			}
			entries = append(entries, some...)
		case movesBucket:
		default:
			rest = append(rest, c)
		}
	}
	if len(entries) < logFew {
		return list, nil
	}
	slices.SortFunc(entries, func(a, b objects.LogEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	var run entryRun
	for _, e := range entries {
		rest = append(rest, run.add(e)...)
	}
	rest = append(rest, run.flush()...)
	version, err := l.version()
	if err == nil && version < formatPacked {
		rest = append(rest, change{metaBucket, formatKey, encodeFormat(formatPacked)})
	}
	return rest, err
}
