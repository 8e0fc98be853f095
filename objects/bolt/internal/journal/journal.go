// Package journal is the write-ahead log of a store.
//
// The journal holds the changes that are not in the database file yet, so that a group of
// writers costs one write and one fdatasync. A checkpoint writes the changes into the file
// and raises the generation, after which older frames no longer count and the journal is
// written again from its start. The file is filled with zeros before it is needed, so that
// fdatasync need not write file system metadata. Numbers are big-endian.
//
//	header   "tract journal\x00", version u16, salt [16]byte, checksum u64; zeros to 4096
//	frame    "TJF1", payload length u32, generation u64, sequence u64, checksum u64;
//	         the payload; zeros to the next multiple of 64
//	change   bucket number (one byte, with 0x80 added if the key is deleted), varint
//	         length and key, and unless it is deleted varint length and value
//
// The checksum of a frame covers the salt, its offset in the file, its header and its
// payload, so that a frame is valid at one place of one store only. The frames that count
// have the generation that the database file names ([Binding]) and ascending sequence
// numbers without a gap.
//
// After a crash the last frame may be incomplete. So that a frame that was acknowledged
// and is damaged is not taken for such a frame, the end of the acknowledged frames is kept
// in the anchor; see anchor.go.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// The layout of the file.
const (
	Start      = 4096 // offset of the first frame
	HeaderSize = len(magic) + 2 + SaltSize + checksum.Size
	SaltSize   = 16

	magic   = "tract journal\x00"
	version = 2
)

// Binding ties a journal to a database file, which stores it.
type Binding struct {
	Salt       [SaltSize]byte
	Generation uint64 // of the frames that count
	Sequence   uint64 // of the last frame that is in the file
	File       uint64 // how many files had the name of the store before this one
}

// Encode returns the record of b.
func (b Binding) Encode() []byte {
	var r canonical.Record
	salt := b.Salt[:]
	b.fields(&r, &salt)
	return r.Bytes()
}

// DecodeBinding decodes what Encode returned.
func DecodeBinding(record []byte) (b Binding, err error) {
	r := canonical.NewReader(record)
	var salt []byte
	b.fields(&r, &salt)
	if copy(b.Salt[:], salt); len(salt) != SaltSize || b.Generation == 0 {
		r.Refuse("no generation, or no salt")
	}
	return b, r.Err()
}

// fields writes the fields of the record of b, or reads them.
func (b *Binding) fields(r *canonical.Record, salt *[]byte) {
	r.Raw(1, salt)
	r.Uint(2, &b.Generation)
	r.Uint(3, &b.Sequence)
	r.Uint(4, &b.File)
}

// NewFile returns the content of a new journal.
func NewFile(salt [SaltSize]byte) []byte {
	b := append(make([]byte, 0, FirstSize), magic...)
	b = append(append(b, 0, version), salt[:]...)
	return binary.BigEndian.AppendUint64(b, checksum.Sum(b))[:FirstSize]
}

// CheckHeader checks the first HeaderSize bytes of a journal.
func CheckHeader(b []byte, salt [SaltSize]byte) error {
	const at = len(magic)
	switch {
	case len(b) < HeaderSize || !bytes.HasPrefix(b, []byte(magic)):
		return errors.New("not a journal")
	case binary.BigEndian.Uint64(b[HeaderSize-8:]) != checksum.Sum(b[:HeaderSize-8]):
		return errors.New("the header has a wrong checksum")
	case binary.BigEndian.Uint16(b[at:]) != version:
		return fmt.Errorf("version %d, and only %d is supported: %w: upgrade tract", binary.BigEndian.Uint16(b[at:]), version, objects.ErrFormat)
	case !bytes.Equal(b[at+2:HeaderSize-8], salt[:]):
		return errors.New("it belongs to another store")
	}
	return nil
}
