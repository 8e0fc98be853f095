package objects

import (
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
)

// NewLogEntry makes an entry and computes its hash. The updates have their Prev.
func NewLogEntry(seq uint64, note Note, refs []RefUpdate) LogEntry {
	e, _ := EncodeLogEntry(seq, note, refs)
	return e
}

// EncodeLogEntry is NewLogEntry, and returns the record of the entry too.
func EncodeLogEntry(seq uint64, note Note, refs []RefUpdate) (e LogEntry, record []byte) {
	note.Time = utcMillis(note.Time)
	e = LogEntry{Seq: seq, Note: note, Refs: refs}
	record = e.Record()
	e.Hash = Hash(logPrefix, record)
	return e, record
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
	var r canonical.Record
	e.fields(&r)
	return r.Bytes()
}

// fields writes the fields of the record, or reads them.
func (e *LogEntry) fields(r *canonical.Record) {
	canonical.Number(r, logSeq, &e.Seq, maxSeq+1)
	r.Time(logTime, &e.Note.Time)
	r.String(logAuthor, &e.Note.Author)
	r.String(logCommand, &e.Note.Command)
	canonical.Records(r, logUpdate, &e.Refs, (*RefUpdate).fields)
	e.Note.Group.field(r, logGroup)
	r.Bool(logContinues, &e.Note.Continues)
	e.Note.Reverts.field(r, logReverts)
}

func (u *RefUpdate) fields(r *canonical.Record) {
	r.String(updateName, &u.Name)
	r.Hash(updateOld, (*[32]byte)(&u.Old))
	r.Hash(updateNew, (*[32]byte)(&u.New))
	r.Hash(updatePrev, (*[32]byte)(&u.Prev))
}

// field writes a group as a field, unless it is zero, or reads it.
func (g *Group) field(r *canonical.Record, field int) {
	var b []byte
	if !g.IsZero() {
		b = g[:]
	}
	r.Raw(field, &b)
	if copy(g[:], b); b != nil && (len(b) != len(g) || g.IsZero()) {
		r.Refuse("a group is 16 bytes that are not all zero")
	}
}

// ParseLogEntry reads a record and computes its hash.
func ParseLogEntry(record []byte) (LogEntry, error) {
	var e LogEntry
	r := canonical.NewReader(record)
	e.fields(&r)
	if err := r.Err(); err != nil {
		return LogEntry{}, &CorruptError{Cause: fmt.Errorf("ref log: %w", err)}
	}
	e.Hash = Hash(logPrefix, record)
	return e, nil
}
