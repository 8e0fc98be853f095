package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// A checkpoint stores packs uncompressed. gc compresses the bodies of packs, their heads except
// the ids, with zstd where that is shorter: one frame that states the size of its content, without a
// checksum of its own.

// codec is how bytes of a pack are stored.
type codec byte

const (
	codecRaw  codec = 0
	codecZstd codec = 1

	codecPurged codec = 0x80 // added to one of these: objects of the pack were purged
)

// compressFrom compresses what follows the first from bytes of b, and adds a flag to the byte at an
// offset below from, unless b is then no shorter or is too large to be read.
func compressFrom(b []byte, from, flagAt int, flag byte) []byte {
	compressed := compression.CompressBest(slices.Clone(b[:from]), b[from:])
	if len(compressed) >= len(b) || len(b) > compression.MaxSize {
		return b
	}
	compressed[flagAt] |= flag
	return compressed
}

// inflate returns the content of a compressed frame. With an error it returns the beginning of
// that. It allocates no more than the frame states, and no more than compression.MaxSize.
func inflate(a *arena, frame []byte) ([]byte, error) {
	n, err := compression.Size(frame)
	if err != nil {
		return nil, err
	}
	return compression.Append(a.pageArena().Take(n + compression.Slack)[:0], frame)
}

// decodeBody returns the data of a body, which must have the size that the head states, and
// reports whether the checksum is valid.
func decodeBody(a *arena, p *pack, b []byte) (data []byte, sound bool, err error) {
	if data, sound, err = decodeBodyData(a, p.n, b); err != nil {
		return nil, false, err
	}
	if len(data) != p.BodySize() {
		return nil, false, fmt.Errorf("pack %d: %w: a body of %d bytes, not %d", p.n, errPack, len(data), p.BodySize())
	}
	return data, sound, nil
}

// decodeBodyData returns the data of a body, and reports whether the checksum is valid. Every
// reader of a whole body calls it.
func decodeBodyData(a *arena, n uint32, b []byte) (data []byte, sound bool, err error) {
	if len(b) < bodyStart {
		return nil, false, fmt.Errorf("pack %d: %w: a body of %d bytes", n, errPack, len(b))
	}
	data = b[bodyStart:]
	switch codec(b[8]) &^ codecPurged {
	case codecRaw:
	case codecZstd:
		if data, err = inflate(a, data); err != nil {
			return nil, false, fmt.Errorf("pack %d: %w: %w", n, errPack, err)
		}
	default:
		return nil, false, fmt.Errorf("pack %d: %w: codec %d is not known", n, errPack, b[8])
	}
	return data, binary.BigEndian.Uint64(b) == checksum.Sum(packKey(n), b[8:]), nil
}

// decodedSize returns how many bytes of data a body with this beginning has, or 0 if it does
// not state that.
func decodedSize(begin []byte, size int) int {
	switch {
	case len(begin) < bodyStart:
	case codec(begin[8])&^codecPurged == codecRaw:
		return size - bodyStart
	case codec(begin[8])&^codecPurged == codecZstd:
		if n, err := compression.Size(begin[bodyStart:]); err == nil {
			return n
		}
	}
	return 0
}

// bodyCache keeps the bodies that were unpacked last for the sake of one object, since
// more of them are often asked for. They are shared, and never changed.
type bodyCache struct {
	mu       sync.Mutex
	list     [4]cachedBody
	next     int
	unpacked int // bodies that were kept
}

// cachedBody is what became of a body. It is known by the number of the pack and by the
// beginning of what was unpacked, which is a checksum of it.
type cachedBody struct {
	pack  uint32
	begin [bodyStart]byte
	data  []byte
	err   error
}

func (o *bodyCache) get(pack uint32, begin []byte) (one cachedBody, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.list {
		if one.pack == pack && pack > 0 && bytes.Equal(one.begin[:], begin) {
			return one, true
		}
	}
	return one, false
}

func (o *bodyCache) put(pack uint32, begin []byte, one cachedBody) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one.pack = pack
	copy(one.begin[:], begin)
	o.list[o.next] = one
	o.next = (o.next + 1) % len(o.list)
	o.unpacked++
}

// clear removes all bodies: the file is another.
func (o *bodyCache) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = [len(o.list)]cachedBody{}
}
