package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/tract-vcs/tract/objects"
)

// Sizes and codes of the file format.
const (
	HeaderSize  = 16 // of a page
	ElementSize = 16
	MetaSize    = 64

	BranchFlag   = 0x01
	LeafFlag     = 0x02
	FreelistFlag = 0x10
	BucketFlag   = 0x01 // of a leaf element: its value is a bucket

	magic   = 0xED0CDAED
	Version = 2

	MinSize = 1 << 10
	maxSize = 1 << 24
)

// Order is the byte order of numbers in a file.
var Order = binary.NativeEndian

// Meta is the state of a file after one transaction.
type Meta struct {
	PageSize       int
	Root, Freelist uint64
	HighWater      uint64 // page ids are below it
	Tx             uint64
}

// ReadMeta returns the newer of the two meta pages and checks it against the size of the
// file. Both pages must be sound: bbolt would continue from the older one if the newer is
// damaged, and the last commit would be lost silently. No crash leaves a damaged meta
// page, since the part of it that counts lies in one sector.
func ReadMeta(f io.ReaderAt, size int64) (Meta, error) {
	if size == 0 {
		return Meta{}, errors.New("the file is empty")
	}
	m, err := ReadMetaAt(f, 0)
	if err != nil {
		return Meta{}, fmt.Errorf("first meta page: %w", err)
	}
	second, err := ReadMetaAt(f, int64(m.PageSize))
	if err != nil {
		return Meta{}, fmt.Errorf("second meta page: %w", err)
	}
	if second.Tx == m.Tx {
		return Meta{}, fmt.Errorf("both meta pages have transaction %d", m.Tx)
	}
	if second.Tx > m.Tx {
		m = second
	}
	switch {
	case m.Root < 2 || m.Root >= m.HighWater || m.Freelist < 2 || m.Freelist >= m.HighWater:
		return Meta{}, fmt.Errorf("the meta page refers to pages %d and %d of %d", m.Root, m.Freelist, m.HighWater)
	case m.HighWater > uint64(size)/uint64(m.PageSize):
		return Meta{}, fmt.Errorf("the file is truncated: it has %d bytes, and %d pages of %d bytes are in use", size, m.HighWater, m.PageSize)
	}
	return m, nil
}

// ReadMetaAt reads the meta page at an offset. It does not compare it with the file.
func ReadMetaAt(f io.ReaderAt, at int64) (Meta, error) {
	var b [MetaSize]byte
	if _, err := f.ReadAt(b[:], at+HeaderSize); err != nil {
		return Meta{}, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	pageSize := Order.Uint32(b[8:])
	switch {
	case Order.Uint32(b[0:]) != magic:
		return Meta{}, errors.New("not a bbolt file")
	case Order.Uint64(b[56:]) != sum.Sum64():
		return Meta{}, errors.New("wrong checksum")
	case Order.Uint32(b[4:]) != Version: // the checksum shows that it was written so
		return Meta{}, fmt.Errorf("bbolt file format %d, and only %d is supported: %w: upgrade tract", Order.Uint32(b[4:]), Version, objects.ErrFormat)
	case pageSize < MinSize || pageSize > maxSize || pageSize&(pageSize-1) != 0:
		return Meta{}, fmt.Errorf("pages of %d bytes", pageSize)
	}
	return Meta{
		PageSize: int(pageSize), Root: Order.Uint64(b[16:]), Freelist: Order.Uint64(b[32:]),
		HighWater: Order.Uint64(b[40:]), Tx: Order.Uint64(b[48:]),
	}, nil
}
