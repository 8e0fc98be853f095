package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tract-vcs/tract/objects"
)

// While a conversation is young it lies as it is. When the store is packed closely
// the bodies of packs, all of their heads but the ids, and large objects are in
// zstd where that is shorter: one frame that says how long what is in it is,
// without a checksum of its own.

// codec says how bytes of a pack are kept.
type codec byte

const (
	codecRaw  codec = 0
	codecZstd codec = 1
)

// packMost is most that a frame holds. A pack is full long before that.
const packMost = 8 << 20

// zstdHead is most bytes that a frame has before its first block.
const zstdHead = zstd.HeaderMaxSize

// zstdSlack is how much room behind the data lets the decoder copy without looking how
// much there is.
const zstdSlack = 16

// zstdMagic begins a frame of zstd.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// What is packed closely is packed once and read often, so it is packed as well as can
// be, two frames at a time: each takes 40 MB. What is written while somebody waits is
// packed quickly. All of these are made when they are first needed, and used by any
// number of goroutines: each call is one frame in memory.
var (
	closely     = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedBestCompression, 2) })
	quickly     = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedFastest, 1) })
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(packMost),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err)
		}
		return d
	})
)

func newEncoder(level zstd.EncoderLevel, frames int) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(frames),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true), zstd.WithWindowSize(packMost))
	if err != nil {
		panic(err) // the options are right or wrong for ever
	}
	return e
}

// deflate adds data to b in zstd. What is longer than packMost nobody could read.
func deflate(b, data []byte) []byte { return closely().EncodeAll(data, b) }

// shorter gives closed, which was made of b with so many bytes of data, if it is
// worth it.
func shorter(b, closed []byte, data int) ([]byte, bool) {
	if len(closed) >= len(b) || data > packMost {
		return b, false
	}
	return closed, true
}

// inflate gives some bytes and behind them what is in a frame of zstd, or the beginning
// of it and what is wrong. No more memory is taken than the frame says, nor more than a
// pack can need.
func inflate(a *arena, before, b []byte) ([]byte, error) {
	var h zstd.Header
	switch err := h.Decode(b); {
	case err != nil:
		return nil, fmt.Errorf("no frame of zstd: %w", err)
	case !h.HasFCS || h.FrameContentSize > packMost:
		return nil, fmt.Errorf("a frame of zstd of %d bytes", h.FrameContentSize)
	}
	size := len(before) + int(h.FrameContentSize)
	room := a.takeBytes(size + zstdSlack)
	data, err := zstdDecoder().DecodeAll(b, room[:copy(room, before)])
	if err == nil && len(data) != size {
		err = fmt.Errorf("%d bytes in a frame of %d", len(data), size)
	}
	return data, err
}

// closeHead packs what follows the ids of a head, if that makes it shorter.
func closeHead(b []byte, ids int) []byte {
	closed, ok := shorter(b, deflate(slices.Clone(b[:ids]), b[ids:]), len(b)-ids)
	if ok {
		closed[8] |= packZstd >> 8
	}
	return closed
}

// recordZstd is added to the kind of an object whose record is in zstd behind it.
const recordZstd = 0x80

func recordKind(first byte) objects.Kind { return objects.Kind(first &^ recordZstd) }

// closeRecord packs the record of a large object, if that makes it shorter. One that
// is packed stays as it is.
func closeRecord(b []byte) []byte {
	if len(b) == 0 || b[0]&recordZstd != 0 || isTombstone(b) {
		return b
	}
	closed, _ := shorter(b, deflate([]byte{b[0] | recordZstd}, b[1:]), len(b))
	return closed
}

// openRecord gives the record of an object as it is without a codec.
func openRecord(b []byte) ([]byte, error) {
	if len(b) == 0 || b[0]&recordZstd == 0 {
		return b, nil
	}
	return inflate(nil, []byte{byte(recordKind(b[0]))}, b[1:])
}

// closeBody packs a body, if that makes it shorter.
func closeBody(b []byte) []byte {
	closed, _ := shorter(b, deflate(append(slices.Clone(b[:8]), byte(codecZstd)), b[bodyStart:]), len(b))
	return closed
}

// openBody gives the data in a body that fits the head of its pack, and tells whether
// its checksum is right.
func openBody(a *arena, p *pack, b []byte) (data []byte, sound bool, err error) {
	if data, sound, err = openData(a, p.n, b); err != nil {
		return nil, false, err
	}
	if len(data) != p.Body() {
		return nil, false, fmt.Errorf("pack %d: %w: a body of %d bytes, not %d", p.n, errPack, len(data), p.Body())
	}
	return data, sound, nil
}

// openData gives the data in the body of a pack, and tells whether its checksum is
// right. Every reader of a whole body comes through here.
func openData(a *arena, n uint32, b []byte) (data []byte, sound bool, err error) {
	if len(b) < bodyStart {
		return nil, false, fmt.Errorf("pack %d: %w: a body of %d bytes", n, errPack, len(b))
	}
	data = b[bodyStart:]
	switch codec(b[8]) {
	case codecRaw:
	case codecZstd:
		if data, err = inflate(a, nil, data); err != nil {
			return nil, false, fmt.Errorf("pack %d: %w: %w", n, errPack, err)
		}
	default:
		return nil, false, fmt.Errorf("pack %d: %w: codec %d is not known", n, errPack, b[8])
	}
	return data, binary.BigEndian.Uint64(b) == sum(packKey(n), b[8:]), nil
}

// openSize is how many bytes of data are in a body that begins so, and 0 if nobody
// knows.
func openSize(begin []byte, size int) int {
	var h zstd.Header
	switch {
	case len(begin) < bodyStart:
	case codec(begin[8]) == codecRaw:
		return size - bodyStart
	case codec(begin[8]) == codecZstd && h.Decode(begin[bodyStart:]) == nil && h.HasFCS && h.FrameContentSize <= packMost:
		return int(h.FrameContentSize)
	}
	return 0
}

// opened keeps the bodies that were unpacked last for the sake of one object, since
// more of them are often asked for, and the ids of bare packs. They are shared, and
// never changed.
type opened struct {
	mu   sync.Mutex
	list [4]openedBody
	next int
	bare [barePacks]bareIDs
}

// openedBody is known by its number and by the beginning of what was unpacked, which
// is a checksum of it: another file may take the place of the store's.
type openedBody struct {
	pack  uint32
	begin [bodyStart]byte
	data  []byte
}

func (o *opened) get(pack uint32, begin []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		if one := &o.list[i]; one.data != nil && one.pack == pack && bytes.Equal(one.begin[:], begin) {
			return one.data, true
		}
	}
	return nil, false
}

func (o *opened) keep(pack uint32, begin, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := openedBody{pack: pack, data: data}
	copy(one.begin[:], begin)
	o.list[o.next] = one
	o.next = (o.next + 1) % len(o.list)
}
