package objects

import (
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
)

// NewLogEntry makes an entry and computes its hash. The updates have their Prev.
func NewLogEntry(seq uint64, note Note, refs []RefUpdate) LogEntry {
	e, _ := NewLogRecord(nil, seq, note, refs)
	return e
}

// NewLogRecord is NewLogEntry, and gives the Record of the entry as well: in the free room
// behind room, where that is enough.
func NewLogRecord(room []byte, seq uint64, note Note, refs []RefUpdate) (LogEntry, []byte) {
	note.Time = utcMillis(note.Time)
	e := LogEntry{Seq: seq, Note: note, Refs: refs}
	record := e.record(room)
	e.Hash = Hash(logPrefix, record)
	return e, record
}

// maxSeq leaves room for the entries after it, whatever a record says.
const maxSeq = 1 << 62

var logPrefix = []byte("tract log 2\x00")

// Record is the canonical record of the entry, which its hash covers.
func (e LogEntry) Record() []byte { return e.record(nil) }

func (e *LogEntry) record(room []byte) []byte {
	const head = 16 // what stands before an item takes less
	size := 64 + 2*(len(Group{})+2) + head + len(e.Note.Author) + len(e.Note.Command)
	for i := range e.Refs {
		size += len(e.Refs[i].Name) + 3*len(ID{}) + head
	}
	enc := canonical.NewEncoder(slices.Grow(room, size))
	enc.Uint(1, e.Seq)
	enc.Int(2, e.Note.Time.UnixMilli())
	enc.String(3, e.Note.Author)
	enc.String(4, e.Note.Command)
	for i := range e.Refs {
		u, b := &e.Refs[i], enc.Bytes()
		sub := canonical.NewEncoder(b[:len(b)+head]) // it is made behind where it will be
		sub.String(1, u.Name)
		sub.Hash(2, u.Old)
		sub.Hash(3, u.New)
		sub.Hash(4, u.Prev)
		enc.Item(5, sub.Bytes())
	}
	e.Note.Group.encode(&enc, 6)
	enc.Bool(7, e.Note.Continues)
	e.Note.Reverts.encode(&enc, 8)
	return enc.Bytes()
}

// ParseLogEntry reads a record and computes its hash.
func ParseLogEntry(record []byte) (LogEntry, error) {
	var e LogEntry
	ms := int64(0)
	d := canonical.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			if e.Seq = d.Uint(); e.Seq > maxSeq {
				d.Refuse("the sequence number is too large")
			}
		case 2:
			ms = d.Int()
		case 3:
			e.Note.Author = d.String()
		case 4:
			e.Note.Command = d.String()
		case 5:
			u, err := parseRefUpdate(d.Item())
			if err != nil {
				d.Refuse(err.Error())
			}
			e.Refs = append(e.Refs, u)
		case 6:
			e.Note.Group = decodeGroup(d)
		case 7:
			e.Note.Continues = d.Bool()
		case 8:
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
func (g *Group) encode(e *canonical.Encoder, field int) {
	if !g.IsZero() {
		e.Raw(field, g[:])
	}
}

// decodeGroup reads what encode wrote; anything but the bytes of a group is refused.
func decodeGroup(d *canonical.Decoder) (g Group) {
	b := d.Raw()
	if d.Err() == nil && (len(b) != len(g) || Group(b).IsZero()) {
		d.Refuse("a group is 16 bytes that are not all zero")
	}
	copy(g[:], b)
	return g
}

func parseRefUpdate(record []byte) (RefUpdate, error) {
	var u RefUpdate
	d := canonical.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			u.Name = d.String()
		case 2:
			u.Old = ID(d.Hash())
		case 3:
			u.New = ID(d.Hash())
		case 4:
			u.Prev = ID(d.Hash())
		}
	}
	return u, d.Err()
}
