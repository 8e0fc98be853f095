package objects

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/internal/canonical"
)

// NewLogEntry makes an entry and computes its hash. The updates have their Prev.
func NewLogEntry(seq uint64, note Note, refs []RefUpdate) LogEntry {
	note.Time = utcMillis(note.Time)
	e := LogEntry{Seq: seq, Note: note, Refs: refs}
	e.Hash = Hash(logPrefix, e.Record())
	return e
}

// maxSeq is the largest Seq that a record may have, so that later entries have a number.
const maxSeq = 1 << 62

var logPrefix = []byte("tract log 2\x00")

// The fields of a log record, and of a ref update in it.
const (
	logSeq = 1 + iota
	logTime
	logAuthor
	logCommand
	logUpdate
	logGroup
	logContinues
	logReverts
)

const (
	updateName = 1 + iota
	updateOld
	updateNew
	updatePrev
)

// Record returns the canonical record of the entry, which its hash covers.
func (e LogEntry) Record() []byte {
	const update = 3*len(ID{}) + 16 // room for an update without its name
	size := 96 + len(e.Note.Author) + len(e.Note.Command)
	for _, u := range e.Refs {
		size += update + len(u.Name)
	}
	enc := canonical.NewEncoder(make([]byte, 0, size))
	enc.Uint(logSeq, e.Seq)
	enc.Int(logTime, e.Note.Time.UnixMilli())
	enc.String(logAuthor, e.Note.Author)
	enc.String(logCommand, e.Note.Command)
	for _, u := range e.Refs {
		sub := canonical.NewEncoder(make([]byte, 0, update+len(u.Name)))
		sub.String(updateName, u.Name)
		sub.Hash(updateOld, u.Old)
		sub.Hash(updateNew, u.New)
		sub.Hash(updatePrev, u.Prev)
		enc.Item(logUpdate, sub.Bytes())
	}
	encodeGroup(&enc, logGroup, e.Note.Group)
	enc.Bool(logContinues, e.Note.Continues)
	encodeGroup(&enc, logReverts, e.Note.Reverts)
	return enc.Bytes()
}

// ParseLogEntry reads a record and computes its hash.
func ParseLogEntry(record []byte) (LogEntry, error) {
	var e LogEntry
	ms := int64(0)
	d := canonical.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case logSeq:
			if e.Seq = d.Uint(); e.Seq > maxSeq {
				d.Refuse("the sequence number is too large")
			}
		case logTime:
			ms = d.Int()
		case logAuthor:
			e.Note.Author = d.String()
		case logCommand:
			e.Note.Command = d.String()
		case logUpdate:
			u, err := parseRefUpdate(d.Item())
			if err != nil {
				d.Refuse(err.Error())
			}
			e.Refs = append(e.Refs, u)
		case logGroup:
			e.Note.Group = decodeGroup(d)
		case logContinues:
			e.Note.Continues = d.Bool()
		case logReverts:
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

// encodeGroup writes a group as a field, unless it is zero.
func encodeGroup(e *canonical.Encoder, field int, g Group) {
	if !g.IsZero() {
		e.Raw(field, g[:])
	}
}

// decodeGroup reads a group; anything but the bytes of a group is refused.
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
		case updateName:
			u.Name = d.String()
		case updateOld:
			u.Old = ID(d.Hash())
		case updateNew:
			u.New = ID(d.Hash())
		case updatePrev:
			u.Prev = ID(d.Hash())
		}
	}
	return u, d.Err()
}
