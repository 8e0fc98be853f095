package objects

import (
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/canon"
)

// NewLogEntry makes the entry that follows prev (the zero LogEntry: the first
// of its store) and computes its hash.
func NewLogEntry(prev LogEntry, note Note, refs []RefUpdate) LogEntry {
	e, _ := NewLogRecord(nil, prev, note, refs)
	return e
}

// NewLogRecord is NewLogEntry, and gives the Record of the entry as well: in the free room
// behind room, where that is enough.
func NewLogRecord(room []byte, prev LogEntry, note Note, refs []RefUpdate) (LogEntry, []byte) {
	note.Time = utcMillis(note.Time)
	e := LogEntry{Seq: prev.Seq + 1, Prev: prev.Hash, Note: note, Refs: refs}
	record := e.record(room)
	e.Hash = Hash(logPrefix, record)
	return e, record
}

var logPrefix = []byte("tract log 1\x00")

// Record is the canonical record of the entry, which its hash covers.
func (e LogEntry) Record() []byte { return e.record(nil) }

func (e *LogEntry) record(room []byte) []byte {
	const head = 16 // what stands before an item takes less
	size := 64 + 2*(len(Group{})+2) + head + len(e.Note.Author) + len(e.Note.Command)
	for i := range e.Refs {
		size += len(e.Refs[i].Name) + 2*len(ID{}) + head
	}
	enc := canon.NewEncoder(slices.Grow(room, size))
	enc.Uint(1, e.Seq)
	e.Prev.Encode(&enc, 2)
	enc.Int(3, e.Note.Time.UnixMilli())
	enc.String(4, e.Note.Author)
	enc.String(5, e.Note.Command)
	for i := range e.Refs {
		u, b := &e.Refs[i], enc.Bytes()
		sub := canon.NewEncoder(b[:len(b)+head]) // it is made behind where it will be
		sub.String(1, u.Name)
		u.Old.Encode(&sub, 2)
		u.New.Encode(&sub, 3)
		enc.Item(6, sub.Bytes())
	}
	e.Note.Group.encode(&enc, 7)
	enc.Bool(8, e.Note.Continues)
	e.Note.Reverts.encode(&enc, 9)
	return enc.Bytes()
}

// ParseLogEntry reads a record and computes its hash.
func ParseLogEntry(record []byte) (LogEntry, error) {
	var e LogEntry
	ms := int64(0)
	d := canon.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			e.Seq = d.Uint()
		case 2:
			e.Prev = DecodeID(d)
		case 3:
			ms = d.Int()
		case 4:
			e.Note.Author = d.String()
		case 5:
			e.Note.Command = d.String()
		case 6:
			u, err := parseRefUpdate(d.Item())
			if err != nil {
				d.Refuse(err.Error())
			}
			e.Refs = append(e.Refs, u)
		case 7:
			e.Note.Group = decodeGroup(d)
		case 8:
			e.Note.Continues = d.Bool()
		case 9:
			e.Note.Reverts = decodeGroup(d)
		}
	}
	if err := d.Err(); err != nil {
		return LogEntry{}, &CorruptError{Cause: fmt.Errorf("ref log: %w", err)}
	}
	e.Note.Time = time.UnixMilli(ms).UTC()
	e.Hash = Hash(logPrefix, record)
	return e, nil
}

// encode writes the group as a field, unless it is zero.
func (g *Group) encode(e *canon.Encoder, field int) {
	if !g.IsZero() {
		e.Raw(field, g[:])
	}
}

// decodeGroup reads what encode wrote; anything but the bytes of a group is refused.
func decodeGroup(d *canon.Decoder) (g Group) {
	b := d.Raw()
	if d.Err() == nil && (len(b) != len(g) || Group(b).IsZero()) {
		d.Refuse("a group is 16 bytes that are not all zero")
	}
	copy(g[:], b)
	return g
}

func parseRefUpdate(record []byte) (RefUpdate, error) {
	var u RefUpdate
	d := canon.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			u.Name = d.String()
		case 2:
			u.Old = DecodeID(d)
		case 3:
			u.New = DecodeID(d)
		}
	}
	return u, d.Err()
}
