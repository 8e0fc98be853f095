package content

import (
	"encoding/binary"
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

// Encode gives the canonical record of a block that [CheckBlock] accepts.
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

// Decode reads a record. It refuses what Encode does not write, and returns a
// block that shares no memory with the record.
func Decode(record []byte) (Block, error) { return decode(record, "") }

// DecodeNoCopy is Decode of a record that nobody writes to any more: the words of the
// block are pieces of it, and keep it in memory.
func DecodeNoCopy(record []byte) (Block, error) {
	// A string of the same bytes, without a copy: to make room for the words of a long
	// history takes longer than to read them. They never change, as the caller says.
	return decode(record, unsafe.String(unsafe.SliceData(record), len(record)))
}

// plain reads the record of words and nothing else, as most are: its kind, and where
// the words begin. It gives up on whatever is not quite as Encode makes it.
func plain(record []byte) (kind Kind, words int, ok bool) {
	const head = 5 // kind and its tag, the tag of the text, and a byte of its length
	if len(record) <= head || record[0] != fieldKind<<3 || record[2] != 0x8a || record[3] != 0x01 {
		return 0, 0, false
	}
	if kind = Kind(record[1]); kind != KindUser && kind != KindAssistant {
		return 0, 0, false
	}
	n, size := binary.Uvarint(record[4:])
	if size <= 0 || size > 1 && record[3+size] == 0 || n == 0 || n != uint64(len(record)-4-size) {
		return 0, 0, false
	}
	return kind, 4 + size, true
}

// Check says what is wrong with a record: what Decode would say.
func Check(record []byte) error {
	if _, _, ok := plain(record); ok && len(record) <= MaxSize {
		return nil
	}
	_, err := Decode(record)
	return err
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decoder reads one record after another.
type decoder struct {
	canonical.Decoder
	forms sharedForms
}

// decode reads a record. Where text is not empty it has the same bytes, and the words
// of the block are pieces of it.
func decode(record []byte, text string) (Block, error) {
	if len(record) > MaxSize {
		return nil, fmt.Errorf("content record of %d bytes: at most %d", len(record), MaxSize)
	}
	var kind Kind
	var form Form
	if text != "" {
		if kind, words, ok := plain(record); ok {
			return Text{Of: kind, Text: text[words:]}, nil
		}
	}
	d := decoders.Get().(*decoder)
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
		form.decode(&d.Decoder)
	}
	if d.Err() == nil && kinds[kind].decode == nil {
		d.Refuse(fmt.Sprintf("unknown kind %d", kind))
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("content record: %w", err)
	}
	b := kinds[kind].decode(kind, d.forms.wire(form), &d.Decoder)
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
