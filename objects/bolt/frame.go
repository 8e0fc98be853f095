package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
)

// The journal lies beside the file and holds the changes that are not in it yet,
// so that a group of writers costs one write and one sync. Its bytes are there
// before they are needed, as zeros: then a sync need not write what the file
// system knows of the file. Numbers are big-endian.
//
//	header   "tract journal\x00", version u16, salt [16]byte, sum u64; then
//	         zeros to 4096
//	frame    "TJF1", payload length u32, generation u64, sequence u64, sum u64;
//	         the payload; zeros to the next multiple of 64
//	change   bucket number (one byte, 0x80 added: the key is deleted), varint
//	         and key, and unless it is deleted varint and value
//
// The sum of a frame is over salt, its place in the file, its header without the
// sum, and the payload, so that a frame counts in one place of one store only.
// Frames of the generation that the file names in its meta bucket count, in ascending
// sequence without a gap; others are left from before.
const (
	journalMagic   = "tract journal\x00"
	journalVersion = 2
	journalStart   = 4096
	saltSize       = 16
	headerSize     = len(journalMagic) + 2 + saltSize + 8

	frameMagic = "TJF1"
	frameSize  = 32
	frameAlign = 64

	deleted = 0x80
)

const (
	journalFirst = 64 << 10  // bytes of a new journal
	journalStep  = 256 << 10 // most that it grows by at once
	journalLimit = 2 << 20   // of frames that count, when they are folded into the file
	journalClose = 512 << 10 // when it is folded at the end
	journalMost  = 16 << 20  // of frames that count; more are not written
	frameMost    = 512 << 10 // larger groups go into the file at once
)

var journalKey = []byte("journal")

func journalPath(db string) string { return db + "-journal" }

// binding is what the file says of its journal.
type binding struct {
	salt [saltSize]byte
	gen  uint64 // of the frames that count
	seq  uint64 // of the last frame that is in the file
	file uint64 // how many files had the name of the store before
}

func (b binding) encode() []byte {
	var e canonical.Encoder
	e.Raw(1, b.salt[:])
	e.Uint(2, b.gen)
	e.Uint(3, b.seq)
	e.Uint(4, b.file)
	return seal(journalKey, e.Bytes())
}

func decodeBinding(value []byte) (b binding, err error) {
	record, err := unseal(journalKey, value)
	if err != nil {
		return b, err
	}
	d, salted := canonical.NewDecoder(record), false
	for f := range d.Fields() {
		switch f {
		case 1:
			raw := d.Raw()
			if salted = len(raw) == saltSize; !salted {
				d.Refuse("no salt")
			}
			copy(b.salt[:], raw)
		case 2:
			b.gen = d.Uint()
		case 3:
			b.seq = d.Uint()
		case 4:
			b.file = d.Uint()
		}
	}
	if err = d.Err(); err == nil && (b.gen == 0 || !salted) {
		err = errors.New("no generation, or no salt")
	}
	return b, err
}

func encodeHeader(salt [saltSize]byte) []byte {
	b := append([]byte(journalMagic), 0, journalVersion)
	b = append(b, salt[:]...)
	return binary.BigEndian.AppendUint64(b, sum(b))
}

// checkHeader says what is wrong with the beginning of a journal.
func checkHeader(b []byte, salt [saltSize]byte) error {
	const version = len(journalMagic)
	switch {
	case len(b) < headerSize || !bytes.HasPrefix(b, []byte(journalMagic)):
		return errors.New("it is no journal")
	case binary.BigEndian.Uint64(b[headerSize-8:]) != sum(b[:headerSize-8]):
		return errors.New("its header has a wrong checksum")
	case binary.BigEndian.Uint16(b[version:]) != journalVersion:
		return fmt.Errorf("version %d, known is %d: %w: upgrade tract", binary.BigEndian.Uint16(b[version:]), journalVersion, objects.ErrFormat)
	case !bytes.Equal(b[version+2:headerSize-8], salt[:]):
		return errors.New("it is of another store")
	}
	return nil
}

// frameSum is the checksum of a frame at a place in the journal.
func frameSum(salt [saltSize]byte, at int64, header, payload []byte) uint64 {
	place := binary.BigEndian.AppendUint64(salt[:], uint64(at))
	return sum(place, header[:frameSize-8], payload)
}

func aligned(n int64) int64 { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// frameLength is how long the frame is that begins so; 0: none does.
func frameLength(b binding, head []byte) int64 {
	if len(head) < frameSize || string(head[:4]) != frameMagic || binary.BigEndian.Uint64(head[8:]) != b.gen {
		return 0
	}
	return frameSize + int64(binary.BigEndian.Uint32(head[4:]))
}

// parseFrame reads the frame at the beginning of b, which lies at a place of the
// journal. A frame of another generation or store, and half a frame, is none.
func parseFrame(b binding, at int64, f []byte) (payload []byte, seq uint64, ok bool) {
	size := frameLength(b, f)
	if size == 0 || size > int64(len(f)) {
		return nil, 0, false
	}
	payload = f[frameSize:size:size]
	if binary.BigEndian.Uint64(f[24:]) != frameSum(b.salt, at, f, payload) {
		return nil, 0, false
	}
	return payload, binary.BigEndian.Uint64(f[16:]), true
}

// parseChanges reads the changes of a frame, which keep pieces of it: of one that is
// damaged those before the damage.
func parseChanges(b []byte) (f frame, err error) {
	f.b = b
	at := frameSize
	piece := func() (begin, end int) {
		n, size := binary.Uvarint(b[at:])
		if size <= 0 || size > 1 && b[at+size-1] == 0 || n > uint64(len(b)-at-size) {
			err = errors.New("a change is cut off")
			return at, at
		}
		begin = at + size
		at = begin + int(n)
		return begin, at
	}
	for at < len(b) {
		s, kind := span{begin: at}, b[at]
		if int(kind&^deleted) >= bucketCount {
			return f, fmt.Errorf("a change of bucket %d", kind&^deleted)
		}
		at++
		s.bucket, s.gone = kind&^deleted, kind&deleted != 0
		begin, end := piece()
		if err == nil && begin == end {
			err = errors.New("a change without a key")
		}
		s.key, s.keyEnd = int32(begin-s.begin), int32(end-s.begin)
		if !s.gone && err == nil {
			begin, end = piece()
		}
		if err != nil {
			return f, err
		}
		s.value, s.end = int32(begin-s.begin), int32(end-s.begin)
		f.spans = append(f.spans, s)
	}
	return f, nil
}
