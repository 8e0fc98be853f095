package content

import (
	"fmt"
	"sync"
	"unsafe"

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
	var e canonical.Encoder
	f := b.Form()
	e.Uint(fieldKind, uint64(b.Kind()))
	e.Uint(fieldRole, uint64(f.Role))
	e.String(fieldDialect, f.Dialect)
	e.String(fieldID, f.ID)
	e.String(fieldType, f.Type)
	e.Raw(fieldExtra, f.Extra)
	e.Uint(fieldSealType, uint64(f.Seal.Type))
	e.String(fieldSealData, f.Seal.Data)
	e.String(fieldSealMinted, f.Seal.Minted)
	e.Bool(fieldIncomplete, f.Incomplete)
	b.encode(&e)
	return e.Bytes()
}

// Decode reads a record. It refuses what Encode does not write. The block shares no memory with
// the record.
func Decode(record []byte) (Block, error) { return decode(record, "") }

// DecodeNoCopy is Decode of a record that never changes again: the strings of the block are parts
// of it, and keep it in memory.
func DecodeNoCopy(record []byte) (Block, error) {
	// The same bytes as a string: copying the text of a long history takes longer than reading it.
	return decode(record, unsafe.String(unsafe.SliceData(record), len(record)))
}

// Check returns the error that Decode would return.
func Check(record []byte) error {
	_, err := DecodeNoCopy(record)
	return err
}

// decoders is a pool: the functions of the kinds make each decoder escape to the heap, which is
// half of the allocations of a compile without the pool (BenchmarkCompile in package compile).
var decoders = sync.Pool{New: func() any { return new(canonical.Decoder) }}

// decode reads a record. text is empty or has the same bytes, and the strings of the block are
// then parts of it.
func decode(record []byte, text string) (Block, error) {
	if len(record) > MaxSize {
		return nil, fmt.Errorf("content record of %d bytes: at most %d", len(record), MaxSize)
	}
	var kind Kind
	var form Form
	d := decoders.Get().(*canonical.Decoder)
	defer decoders.Put(d)
	d.Reset(record, text)
	for f := range d.Fields() {
		if f >= firstOfKind {
			d.Again()
			break
		}
		if f == fieldKind {
			kind = Kind(d.Small(uint64(len(kinds))))
			continue
		}
		form.decode(d)
	}
	if d.Err() == nil && kinds[kind].decode == nil {
		d.Refuse(fmt.Sprintf("unknown kind %d", kind))
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("content record: %w", err)
	}
	b := kinds[kind].decode(kind, form.Wire(), d)
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("content record: %w", err)
	}
	return b, nil
}

func (f *Form) decode(d *canonical.Decoder) {
	switch d.Field() {
	case fieldRole:
		f.Role = Role(d.Small(uint64(roleEnd)))
	case fieldDialect:
		f.Dialect = d.String()
	case fieldID:
		f.ID = d.String()
	case fieldType:
		f.Type = d.String()
	case fieldExtra:
		f.Extra = append(f.Extra, d.Raw()...)
	case fieldSealType:
		f.Seal.Type = SealType(d.Small(uint64(sealEnd)))
	case fieldSealData:
		f.Seal.Data = d.String()
	case fieldSealMinted:
		f.Seal.Minted = d.String()
	case fieldIncomplete:
		f.Incomplete = d.Bool()
	}
}
