package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

const (
	// Magic begins every frame.
	Magic = "TJF1"
	// FrameHeader is the size of the header of a frame.
	FrameHeader = 32
	// Alignment is what the offset of every frame is a multiple of.
	Alignment = 64

	deletedFlag = 0x80
)

// Change sets a key of a bucket, or deletes it if Value is nil.
type Change struct {
	Bucket     int
	Key, Value []byte
}

// Frame collects the changes of a group. Changes are encoded once, as they are added, and
// keep pointing to the memory of the frame.
type Frame struct {
	Changes []Change
	b       []byte
}

// NewFrame returns an empty frame for about size bytes of changes.
func NewFrame(size int) *Frame {
	const changes, each = 8, 160 // changes of a commit with its content, and the bytes of one
	return &Frame{Changes: make([]Change, 0, changes+size/each), b: make([]byte, FrameHeader, FrameHeader+size+Alignment)}
}

// Size returns the length of the payload.
func (f *Frame) Size() int { return len(f.b) - FrameHeader }

// Put adds a change that sets a key.
func (f *Frame) Put(bucket int, key, value []byte) {
	c := f.addKey(byte(bucket), key)
	f.b = binary.AppendUvarint(f.b, uint64(len(value)))
	from := len(f.b)
	f.b = append(f.b, value...)
	c.Bucket, c.Value = bucket, f.b[from:len(f.b):len(f.b)]
}

// Delete adds a change that deletes a key.
func (f *Frame) Delete(bucket int, key []byte) {
	f.addKey(byte(bucket)|deletedFlag, key).Bucket = bucket
}

func (f *Frame) addKey(kind byte, key []byte) *Change {
	f.b = binary.AppendUvarint(append(f.b, kind), uint64(len(key)))
	from := len(f.b)
	f.b = append(f.b, key...)
	f.Changes = append(f.Changes, Change{Key: f.b[from:len(f.b):len(f.b)]})
	return &f.Changes[len(f.Changes)-1]
}

// Truncate removes the changes that were added since the frame had n of them and this
// size. Their memory is not used again: somebody may be reading it.
func (f *Frame) Truncate(n, size int) {
	f.Changes = f.Changes[:n]
	f.b = f.b[: FrameHeader+size : FrameHeader+size]
}

// encode returns the bytes of the frame for an offset in the journal, padding included.
func (f *Frame) encode(b Binding, at int64, sequence uint64) []byte {
	size := len(f.b)
	copy(f.b, Magic)
	binary.BigEndian.PutUint32(f.b[4:], uint32(size-FrameHeader))
	binary.BigEndian.PutUint64(f.b[8:], b.Generation)
	binary.BigEndian.PutUint64(f.b[16:], sequence)
	binary.BigEndian.PutUint64(f.b[24:], frameSum(b.Salt, at, f.b, f.b[FrameHeader:]))
	return append(f.b, make([]byte, aligned(int64(size))-int64(size))...)
}

// frameSum returns the checksum of a frame at an offset in the journal.
func frameSum(salt [SaltSize]byte, at int64, header, payload []byte) uint64 {
	place := binary.BigEndian.AppendUint64(salt[:], uint64(at))
	return checksum.Sum(place, header[:FrameHeader-8], payload)
}

func aligned(n int64) int64 { return (n + Alignment - 1) &^ (Alignment - 1) }

// frameLength returns the length of the frame that begins with head, without padding; 0
// if head begins no frame of the generation.
func frameLength(b Binding, head []byte) int64 {
	if len(head) < FrameHeader || string(head[:4]) != Magic || binary.BigEndian.Uint64(head[8:]) != b.Generation {
		return 0
	}
	return FrameHeader + int64(binary.BigEndian.Uint32(head[4:]))
}

// parseFrame returns the payload and the sequence number of the frame at the beginning of
// f, which lies at an offset in the journal. ok is false for an incomplete or damaged
// frame and for one of another generation or store.
func parseFrame(b Binding, at int64, f []byte) (payload []byte, sequence uint64, ok bool) {
	size := frameLength(b, f)
	if size == 0 || size > int64(len(f)) {
		return nil, 0, false
	}
	payload = f[FrameHeader:size:size]
	if binary.BigEndian.Uint64(f[24:]) != frameSum(b.Salt, at, f, payload) {
		return nil, 0, false
	}
	return payload, binary.BigEndian.Uint64(f[16:]), true
}

// ParseChanges parses the payload of a frame. The changes are parts of it. If it is
// damaged, ParseChanges returns those before the damage and an error.
func ParseChanges(payload []byte, buckets int) (list []Change, err error) {
	rest := payload
	piece := func() (b []byte) {
		n, size := binary.Uvarint(rest)
		if size <= 0 || size > 1 && rest[size-1] == 0 || n > uint64(len(rest)-size) {
			err = errors.New("a change is truncated")
			return nil
		}
		b, rest = rest[size:size+int(n):size+int(n)], rest[size+int(n):]
		return b
	}
	for len(rest) > 0 {
		kind := rest[0]
		c := Change{Bucket: int(kind &^ deletedFlag)}
		if c.Bucket >= buckets {
			return list, fmt.Errorf("a change of bucket %d", c.Bucket)
		}
		rest = rest[1:]
		if c.Key = piece(); err == nil && len(c.Key) == 0 {
			err = errors.New("a change without a key")
		}
		if kind&deletedFlag == 0 && err == nil {
			c.Value = piece()
		}
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	return list, nil
}
