// Package compression compresses the data that store engines write. A compressed frame is
// one frame of zstd (RFC 8878) with the size of its content in its header, without a
// dictionary and without a checksum. It is the only package that imports the module which
// implements zstd.
package compression

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxSize is the most bytes that a frame may hold. [Append] refuses a larger one.
	MaxSize = 8 << 20

	// MaxHeader is the most bytes of a frame that [Size] reads.
	MaxHeader = zstd.HeaderMaxSize

	// Slack is how many bytes behind the content allow [Append] to copy without checks.
	Slack = 16
)

// magic begins every frame.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// The encoders and the decoder are made when they are first needed, and used by any
// number of goroutines: each call is one frame in memory. The best encoder works on two
// frames at a time, since each takes about 40 MB. (The level below it takes 8 MB and less than
// half of the time, and leaves 4 % more.) Packs have about half a megabyte, so a longer window
// would only take memory.
var (
	best    = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedBestCompression, 2) })
	fastest = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedFastest, 1) })
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxSize),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return d
	})
)

func newEncoder(level zstd.EncoderLevel, frames int) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(frames),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
}

// CompressBest appends data to b, compressed as well as possible: it is written once and
// read often. data has at most MaxSize bytes.
func CompressBest(b, data []byte) []byte { return best().EncodeAll(data, b) }

// CompressFast is CompressBest while somebody waits. data may be larger than MaxSize if only
// [DecompressWith] reads it.
func CompressFast(b, data []byte) []byte { return fastest().EncodeAll(data, b) }

// maxDictionaryWindow bounds the memory of [CompressWith]: matches are found within so many bytes.
const maxDictionaryWindow = 8 << 20

// CompressWith returns data in a frame that refers to a dictionary, which is any bytes of at most
// half of maxDictionaryWindow. The frame does not name it: whoever decompresses it must know the dictionary.
// It takes most of a millisecond, since an encoder is made for the dictionary.
func CompressWith(dictionary, data []byte) []byte {
	window := 1 << 10
	for window < min(len(dictionary)+len(data), maxDictionaryWindow) {
		window *= 2
	}
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
		zstd.WithZeroFrames(true), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderDictRaw(0, dictionary))
	if err != nil {
		panic(err) // the options are valid for every dictionary
	}
	return e.EncodeAll(data, nil)
}

// DecompressWith returns the content of a frame, which must have size bytes. dictionary is that of
// [CompressWith]; empty: the frame has none. It takes no more memory than that, whatever the frame declares.
func DecompressWith(dictionary, frame []byte, size int) ([]byte, error) {
	options := []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(uint64(max(size, 1<<10))),
	}
	if len(dictionary) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(0, dictionary))
	}
	d, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	data, err := d.DecodeAll(frame, make([]byte, 0, size))
	if err == nil && len(data) != size {
		err = fmt.Errorf("%d bytes in a zstd frame of %d", len(data), size)
	}
	return data, err
}

// IsFrame reports whether b begins as a frame does.
func IsFrame(b []byte) bool { return bytes.HasPrefix(b, magic) }

// Size returns how many bytes the frame holds that begins with b, or an error if it does
// not say so or holds more than MaxSize.
func Size(b []byte) (int, error) {
	var h zstd.Header
	switch err := h.Decode(b); {
	case err != nil:
		return 0, fmt.Errorf("no zstd frame: %w", err)
	case !h.HasFCS || h.FrameContentSize > MaxSize:
		return 0, fmt.Errorf("a zstd frame of %d bytes", h.FrameContentSize)
	}
	return int(h.FrameContentSize), nil
}

// Append decompresses a frame and appends its content to b; both together have at most
// MaxSize bytes. With an error it returns the
// part of the content that could be decompressed.
func Append(b, frame []byte) ([]byte, error) {
	n, err := Size(frame)
	if err != nil {
		return b, err
	}
	data, err := decoder().DecodeAll(frame, slices.Grow(b, n))
	if err == nil && len(data) != len(b)+n {
		err = fmt.Errorf("%d bytes in a zstd frame of %d", len(data)-len(b), n)
	}
	return data, err
}

// NewReader returns a reader of the content of any zstd stream, such as a body that another
// program compressed. Close it after use.
func NewReader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxSize))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}
