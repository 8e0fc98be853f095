package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Page is a branch or a leaf. What lies beyond its first pageSize bytes is read on demand.
type Page struct {
	ID     uint64
	Last   uint64 // its last overflow page
	Offset int64  // in the file; 0: the page of an inline bucket
	Leaf   bool
	Count  int // elements
	Size   int // bytes, overflow pages included

	file    io.ReaderAt
	head    []byte
	checked atomic.Bool // Check has found nothing
}

// readHeader reads the first bytes of a page and checks its header except the flags.
func readHeader(a *Arena, f io.ReaderAt, m Meta, id uint64) (p *Page, flags uint16, err error) {
	if id < 2 || id >= m.HighWater {
		return nil, 0, fmt.Errorf("reference to page %d of %d", id, m.HighWater)
	}
	p = &Page{file: f, Offset: int64(id) * int64(m.PageSize), ID: id, head: a.Take(m.PageSize)}
	if _, err := f.ReadAt(p.head, p.Offset); err != nil {
		return nil, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	if self := Order.Uint64(p.head); self != id {
		return nil, 0, fmt.Errorf("page %d has the id %d", id, self)
	}
	overflow := uint64(Order.Uint32(p.head[12:]))
	if overflow >= m.HighWater-id {
		return nil, 0, fmt.Errorf("page %d of %d has %d overflow pages", id, m.HighWater, overflow)
	}
	p.Last = id + overflow
	p.Size = int(overflow+1) * m.PageSize
	p.Count = int(Order.Uint16(p.head[10:]))
	return p, Order.Uint16(p.head[8:]), nil
}

// Read reads a branch or leaf page. It checks the header, not the elements.
func Read(f io.ReaderAt, m Meta, id uint64) (*Page, error) { return openPage(nil, f, m, id) }

// openPage reads the header and the elements of a page; keys and values are read when they are used.
func openPage(a *Arena, f io.ReaderAt, m Meta, id uint64) (*Page, error) {
	p, flags, err := readHeader(a, f, m, id)
	if err != nil {
		return nil, err
	}
	if err := p.setType(flags); err != nil {
		return nil, err
	}
	if need := HeaderSize + p.Count*ElementSize; need > len(p.head) {
		if p.head, err = p.Bytes(0, need); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// parseInline parses the page of a bucket that is small enough to be stored in a value.
func parseInline(b []byte) (*Page, error) {
	if len(b) < HeaderSize {
		return nil, fmt.Errorf("an inline page of %d bytes", len(b))
	}
	p := &Page{head: b, Size: len(b), Count: int(Order.Uint16(b[10:]))}
	if err := p.setType(Order.Uint16(b[8:])); err != nil {
		return nil, err
	}
	if !p.Leaf {
		return nil, errors.New("an inline page with branches")
	}
	return p, nil
}

// setType sets the type that the flags give, and checks that the elements fit the page.
func (p *Page) setType(flags uint16) error {
	if flags != BranchFlag && flags != LeafFlag {
		return fmt.Errorf("page %d has type %#x", p.ID, flags)
	}
	p.Leaf = flags == LeafFlag
	switch {
	case !p.Leaf && p.Count == 0:
		return fmt.Errorf("branch page %d has no element", p.ID)
	case HeaderSize+p.Count*ElementSize > p.Size:
		return fmt.Errorf("page %d has %d elements in %d bytes", p.ID, p.Count, p.Size)
	}
	return nil
}

// Bytes returns n bytes of the page: a part of the page in memory, or bytes read for the
// caller.
func (p *Page) Bytes(at, n int) ([]byte, error) { return p.bytesIn(nil, at, n) }

func (p *Page) bytesIn(a *Arena, at, n int) ([]byte, error) {
	switch {
	case at < 0 || n < 0 || n > p.Size || at > p.Size-n:
		return nil, fmt.Errorf("page %d: bytes %d to %d of %d", p.ID, at, at+n, p.Size)
	case at+n <= len(p.head):
		return p.head[at : at+n : at+n], nil
	}
	b := a.Take(n)
	if _, err := p.file.ReadAt(b, p.Offset+int64(at)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", p.ID, err)
	}
	return b, nil
}

// Element says where a key lies in its page, and its value or its child.
type Element struct {
	KeyAt, KeySize     int // from the beginning of the page
	ValueAt, ValueSize int
	Flags              uint32
	Child              uint64
}

// Element returns element i, unchecked.
func (p *Page) Element(i int) Element {
	at := HeaderSize + i*ElementSize
	b := p.head[at : at+ElementSize]
	if !p.Leaf {
		return Element{KeyAt: at + int(Order.Uint32(b)), KeySize: int(Order.Uint32(b[4:])), Child: Order.Uint64(b[8:])}
	}
	e := Element{Flags: Order.Uint32(b), KeyAt: at + int(Order.Uint32(b[4:])), KeySize: int(Order.Uint32(b[8:]))}
	e.ValueAt, e.ValueSize = e.KeyAt+e.KeySize, int(Order.Uint32(b[12:]))
	return e
}

// Key returns the key of element i.
func (p *Page) Key(i int) ([]byte, error) {
	e := p.Element(i)
	if e.KeySize == 0 {
		return nil, fmt.Errorf("page %d: key %d is empty", p.ID, i)
	}
	return p.Bytes(e.KeyAt, e.KeySize)
}

// search returns the first element whose key is not below key.
func (p *Page) search(key []byte) (i int, exact bool, err error) {
	low, high := 0, p.Count
	for low < high {
		mid := (low + high) / 2
		k, err := p.Key(mid)
		if err != nil {
			return 0, false, err
		}
		switch bytes.Compare(k, key) {
		case 0:
			return mid, true, nil
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false, nil
}

// childIndex returns the index of the element of a branch below which key belongs.
func (p *Page) childIndex(key []byte) (i int, err error) {
	i, exact, err := p.search(key)
	if !exact && i > 0 {
		i--
	}
	return i, err
}

// CheckFirstKey checks that the first key follows the elements immediately, as bbolt writes
// it: otherwise the page has more or fewer elements than its count, and a key that is not
// found may be there. An inline page is no longer than its keys.
func (p *Page) CheckFirstKey() error {
	end := HeaderSize + p.Count*ElementSize
	switch {
	case p.Count > 0 && p.Element(0).KeyAt != end:
		return fmt.Errorf("page %d: its keys begin at %d, and its %d elements end at %d", p.ID, p.Element(0).KeyAt, p.Count, end)
	case p.Count == 0 && p.Offset == 0 && p.Size > end:
		return fmt.Errorf("an inline page without keys has %d bytes", p.Size)
	}
	return nil
}

// Check checks every element of the page. Page ids must be below highWater.
func (p *Page) Check(highWater uint64) error {
	if err := p.CheckFirstKey(); err != nil {
		return err
	}
	var last []byte
	end := HeaderSize + p.Count*ElementSize
	for i := range p.Count {
		k, err := p.Key(i)
		if err != nil {
			return err
		}
		if bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("page %d: key %d is out of order", p.ID, i)
		}
		last = k
		e := p.Element(i)
		if e.KeyAt != end {
			return fmt.Errorf("page %d: key %d begins at %d, and the element before it ends at %d", p.ID, i, e.KeyAt, end)
		}
		end = e.KeyAt + e.KeySize + e.ValueSize
		if !p.Leaf && (e.Child < 2 || e.Child >= highWater) {
			return fmt.Errorf("page %d refers to page %d of %d", p.ID, e.Child, highWater)
		}
		if e.ValueSize > p.Size || e.ValueAt > p.Size-e.ValueSize {
			return fmt.Errorf("page %d: value %d lies beyond its end", p.ID, i)
		}
	}
	return nil
}
