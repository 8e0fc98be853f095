package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// When a store is packed closely the entries of the ref log lie together, under the
// key of the first of them:
//
//	log      seq -> sealed: codec (1: zstd), then in zstd for each entry the length
//	         of its record, a varint, and the record. All but the first are without
//	         the hash of the entry before, which is there to be hashed
//	moves    name, 0, seq of the first -> nothing: one of them moves the ref
//
// A lone entry begins with the tag of its sequence, which is 8.
const (
	logEntries = 256
	logBytes   = 64 << 10
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
	return key, seal(key, deflate([]byte{byte(codecZstd)}, all))
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
	if b, err = inflate(b); err == nil && len(b) == 0 {
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

// putEntry gathers entries that will lie together.
func (c *compaction) putEntry(e objects.LogEntry) error {
	size := len(e.Record())
	if len(c.log) == logEntries || c.logSize+size > logBytes {
		if err := c.flushLog(); err != nil {
			return err
		}
	}
	c.log, c.logSize, c.entry = append(c.log, e), c.logSize+size, e.Seq
	return nil
}

// flushLog writes the entries that are gathered.
func (c *compaction) flushLog() error {
	if len(c.log) == 0 {
		return nil
	}
	key, value := encodeEntries(c.log)
	list := []change{{logBucket, key, value}}
	for _, key := range movesOf(c.log) {
		list = append(list, change{movesBucket, key, []byte{}})
	}
	c.log, c.logSize = nil, 0
	return c.add(list...)
}
