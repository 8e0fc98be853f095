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
// but the last when a store is packed closely. Each costs a tenth of what it does alone:
//
//	log      seq -> sealed: codec (1: zstd), then in zstd the columns
//	moves    name, 0, seq of the first -> nothing: one of them moves the ref
//
// A lone entry begins with the tag of its sequence, which is 8. The last entry of a store
// that is packed closely is alone: who writes needs it, whatever else is damaged.
const (
	logEntries = 256      // most that lie together
	logBytes   = 64 << 10 // of their records
	logFew     = 16       // fewer are left alone when the journal is folded
)

// encodeEntries makes one key and value of entries that follow one another. Where an
// object lies in a pack may be said.
func encodeEntries(list []objects.LogEntry, where placeOf) (key, value []byte) {
	if len(list) == 1 { // it may be of any size
		return logKey(list[0].Seq), encodeEntry(list[0])
	}
	key = logKey(list[0].Seq)
	return key, seal(key, quickly().EncodeAll(encodeColumns(list, where), []byte{byte(codecZstd)}))
}

// decodeEntries gives the entries that lie under a key: one, or some that follow one
// another.
func decodeEntries(key, value []byte, at idAt) (list []objects.LogEntry, err error) {
	record, err := unseal(key, value)
	switch {
	case err != nil:
	case len(key) != 8:
		err = errors.New("its key is no number")
	case len(record) == 0 || codec(record[0]) != codecZstd:
		var e objects.LogEntry
		if e, err = objects.ParseLogEntry(record); err == nil && !bytes.Equal(key, logKey(e.Seq)) {
			err = fmt.Errorf("it holds entry %d", e.Seq)
		}
		list = []objects.LogEntry{e}
	default:
		var b []byte
		if b, err = inflate(nil, nil, record[1:]); err == nil {
			list, err = decodeColumns(binary.BigEndian.Uint64(key), b, at)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("log entry %x: %w", key, err)
	}
	return list, nil
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
	list  []objects.LogEntry
	size  int
	where placeOf // of what they move refs to; nil: not known
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
	n := 64 + 2*len(objects.Group{}) + len(e.Note.Author) + len(e.Note.Command)
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
	key, value := encodeEntries(r.list, r.where)
	list := []change{{logBucket, key, value}}
	for _, key := range movesOf(r.list) {
		list = append(list, change{movesBucket, key, []byte{}})
	}
	r.list, r.size = r.list[:0], 0
	return list
}

// end gives the changes that write the entries that are gathered, the last of them alone.
func (r *entryRun) end() []change {
	n := len(r.list)
	if n < 2 {
		return r.flush()
	}
	last := r.list[n-1]
	r.list = r.list[:n-1]
	list := r.flush()
	r.list = append(r.list, last)
	return append(list, r.flush()...)
}

// layLog has the entries of the log lie together that a fold writes. Few stay as they
// are.
func (l *look) layLog(list []change) ([]change, error) {
	log := make([]change, 0, len(list))
	rest := make([]change, 0, len(list))
	for _, c := range list {
		switch c.bucket {
		case logBucket:
			log = append(log, c)
		case movesBucket:
		default:
			rest = append(rest, c)
		}
	}
	entries, err := l.readLog(log)
	if err != nil {
		return nil, err
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

// readLog gives the entries that lie under some keys. An entry is checked by the next one
// where that names its hash, which covers all of it, and by its checksum where none does.
func (l *look) readLog(log []change) ([]objects.LogEntry, error) {
	entries := make([]objects.LogEntry, 0, len(log))
	open := -1 // the last, if nothing has checked it yet
	check := func() error {
		if open < 0 {
			return nil
		}
		if _, err := unseal(log[open].key, log[open].value); err != nil {
			return fmt.Errorf("log entry %x: %w", log[open].key, err)
		}
		return nil
	}
	for i := range log {
		e, lone := parseLone(log[i].key, log[i].value)
		if open >= 0 && lone && e.Prev == entries[len(entries)-1].Hash {
			entries, open = append(entries, e), i
			continue
		}
		if err := check(); err != nil {
			return nil, err
		}
		if open = i; lone {
			entries = append(entries, e)
			continue
		}
		some, err := decodeEntries(log[i].key, log[i].value, l.idAt)
		if err != nil {
			return nil, err
		}
		entries, open = append(entries, some...), -1
	}
	return entries, check()
}

// parseLone reads an entry that lies alone, and does not look at its checksum.
func parseLone(key, value []byte) (e objects.LogEntry, ok bool) {
	if len(value) <= sealSize || len(key) != 8 || codec(value[sealSize]) == codecZstd {
		return e, false
	}
	e, err := objects.ParseLogEntry(value[sealSize:])
	return e, err == nil && binary.BigEndian.Uint64(key) == e.Seq
}
