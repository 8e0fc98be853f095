package content

import (
	"fmt"
	"sync"

	"github.com/tract-vcs/tract/internal/canonical"
)

// Fields that every record of a block begins with; those of a kind come after.
const (
	fieldKind = 1 + iota
	fieldRole
	fieldDialect
	fieldID
	fieldType
	fieldExtra
	fieldSealType
	fieldSealData
	fieldSealMinted
	fieldIncomplete

	firstOfKind = 16
)

// Encode returns the canonical record of a block that [CheckBlock] accepts.
func Encode(b Block) []byte {
	var r canonical.Record
	kind, form := b.Kind(), b.Form()
	canonical.Number(&r, fieldKind, &kind, uint64(len(kinds)))
	form.fields(&r)
	b.fieldsOfKind(&r)
	return r.Bytes()
}

// fields writes the fields of the form, or reads them.
func (f *Form) fields(r *canonical.Record) {
	canonical.Number(r, fieldRole, &f.Role, uint64(roleEnd))
	r.String(fieldDialect, &f.Dialect)
	r.String(fieldID, &f.ID)
	r.String(fieldType, &f.Type)
	r.Raw(fieldExtra, &f.Extra)
	canonical.Number(r, fieldSealType, &f.Seal.Type, uint64(sealEnd))
	r.String(fieldSealData, &f.Seal.Data)
	r.String(fieldSealMinted, &f.Seal.Minted)
	r.Bool(fieldIncomplete, &f.Incomplete)
}

// Decode reads a record. It refuses what Encode does not write. The block shares no memory with
// the record.
func Decode(record []byte) (Block, error) { return decode(record, false) }

// DecodeNoCopy is Decode of a record that never changes again: the strings of the block are parts
// of it, and keep it in memory.
func DecodeNoCopy(record []byte) (Block, error) {
	return decode(record, true) // to copy the text of a long history takes longer than to read it
}

// Check returns the error that Decode would return.
func Check(record []byte) error {
	_, err := DecodeNoCopy(record)
	return err
}

// readers is a pool: the methods of the kinds make each record escape to the heap, which is
// half of the allocations of a compile without the pool (BenchmarkCompile in package compile).
var readers = sync.Pool{New: func() any { return new(canonical.Record) }}

// decode reads a record. If it is shared, the strings of the block are parts of it.
func decode(record []byte, shared bool) (Block, error) {
	if len(record) > MaxSize {
		return nil, fmt.Errorf("content record of %d bytes: at most %d", len(record), MaxSize)
	}
	r := readers.Get().(*canonical.Record)
	defer readers.Put(r)
	r.Read(record, shared)
	var kind Kind
	canonical.Number(r, fieldKind, &kind, uint64(len(kinds)))
	b := kinds[kind].empty
	switch {
	case b == nil:
		r.Refuse(fmt.Sprintf("unknown kind %d", kind))
	case r.NextField() >= firstOfKind: // as most: it has no form
		b = b.fieldsOfKind(r)
	default:
		var form Form
		form.fields(r)
		b = b.withWire(form.Wire()).fieldsOfKind(r)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("content record: %w", err)
	}
	return b, nil
}
