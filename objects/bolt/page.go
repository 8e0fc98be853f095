package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync/atomic"

	"github.com/tract-vcs/tract/objects"
)

// The file is bbolt's, version 2, in the byte order of the machine:
//
//	page     id u64, flags u16, count u16, overflow u32; then its elements
//	branch   element: pos u32, key size u32, child u64
//	leaf     element: flags u32, pos u32, key size u32, value size u32
//	freelist count times a page id u64; with count 0xffff the first is the count
//	meta     magic u32, version u32, page size u32, flags u32, root u64,
//	         sequence u64, freelist u64, high-water mark u64, transaction u64,
//	         FNV-64a of what is before it u64
//
// where pos counts from the element itself. Reading goes through here, not
// through bbolt, whose map turns damage into faults, endless recursion and
// allocations without limit: here every size and every page number is checked
// before it is used.
const (
	pageHeader  = 16
	elementSize = 16
	metaSize    = 64

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	subBucket    = 0x01 // flag of a leaf element

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

var order = binary.NativeEndian

// meta is the state of a file after one transaction.
type meta struct {
	pageSize       int
	root, freelist uint64
	high           uint64 // page ids are below it
	tx             uint64
}

// readMeta finds the newer of the two meta pages and holds the size of the file
// against it. Both must be sound. bbolt would go on from the older one when the
// newer is damaged, and the last commit would be gone without a word. No crash
// leaves such a page: what counts of it lies in one sector.
func readMeta(f io.ReaderAt, size int64) (meta, error) {
	if size == 0 {
		return meta{}, errors.New("the file is empty")
	}
	m, err := metaAt(f, 0)
	if err != nil {
		return meta{}, fmt.Errorf("first meta page: %w", err)
	}
	second, err := metaAt(f, int64(m.pageSize))
	if err != nil {
		return meta{}, fmt.Errorf("second meta page: %w", err)
	}
	if second.tx == m.tx {
		return meta{}, fmt.Errorf("both meta pages are of transaction %d", m.tx)
	}
	if second.tx > m.tx {
		m = second
	}
	switch {
	case m.root < 2 || m.root >= m.high || m.freelist < 2 || m.freelist >= m.high:
		return meta{}, fmt.Errorf("the meta page leads to pages %d and %d of %d", m.root, m.freelist, m.high)
	case m.high > uint64(size)/uint64(m.pageSize):
		return meta{}, fmt.Errorf("the file is cut off: %d bytes are there of %d pages of %d bytes", size, m.high, m.pageSize)
	}
	return m, nil
}

func metaAt(f io.ReaderAt, at int64) (meta, error) {
	var b [metaSize]byte
	if _, err := f.ReadAt(b[:], at+pageHeader); err != nil {
		return meta{}, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	pageSize := order.Uint32(b[8:])
	switch {
	case order.Uint32(b[0:]) != boltMagic:
		return meta{}, errors.New("no bbolt file")
	case order.Uint64(b[56:]) != sum.Sum64():
		return meta{}, errors.New("wrong checksum")
	case order.Uint32(b[4:]) != boltVersion: // as it was written, by the checksum
		return meta{}, fmt.Errorf("bbolt file format %d, and only %d is known here: %w: upgrade tract", order.Uint32(b[4:]), boltVersion, objects.ErrFormat)
	case pageSize < minPageSize || pageSize > maxPageSize || pageSize&(pageSize-1) != 0:
		return meta{}, fmt.Errorf("pages of %d bytes", pageSize)
	}
	return meta{
		pageSize: int(pageSize), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		high: order.Uint64(b[40:]), tx: order.Uint64(b[48:]),
	}, nil
}

// page is a branch or a leaf. What lies beyond its head is read when asked for.
type page struct {
	file  io.ReaderAt
	at    int64 // where it begins in the file
	id    uint64
	leaf  bool
	count int
	size  int // with its overflow pages
	head  []byte
	last  uint64      // its last overflow page
	sound atomic.Bool // check has found nothing
}

// readHeader reads the beginning of a page and checks all of its header but the flags.
func readHeader(f io.ReaderAt, m meta, id uint64) (p *page, flags uint16, err error) {
	return readHeaderIn(nil, f, m, id)
}

func readHeaderIn(a *arena, f io.ReaderAt, m meta, id uint64) (p *page, flags uint16, err error) {
	if id < 2 || id >= m.high {
		return nil, 0, fmt.Errorf("page %d of %d is asked for", id, m.high)
	}
	p = &page{file: f, at: int64(id) * int64(m.pageSize), id: id, head: a.takeBytes(m.pageSize)}
	if _, err := f.ReadAt(p.head, p.at); err != nil {
		return nil, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	if self := order.Uint64(p.head); self != id {
		return nil, 0, fmt.Errorf("page %d calls itself %d", id, self)
	}
	overflow := uint64(order.Uint32(p.head[12:]))
	if overflow >= m.high-id {
		return nil, 0, fmt.Errorf("page %d of %d goes on for %d pages", id, m.high, overflow)
	}
	p.last = id + overflow
	p.size = int(overflow+1) * m.pageSize
	p.count = int(order.Uint16(p.head[10:]))
	return p, order.Uint16(p.head[8:]), nil
}

func readPage(f io.ReaderAt, m meta, id uint64) (*page, error) { return readPageIn(nil, f, m, id) }

func readPageIn(a *arena, f io.ReaderAt, m meta, id uint64) (*page, error) {
	p, flags, err := readHeaderIn(a, f, m, id)
	if err != nil {
		return nil, err
	}
	if err := p.setFlags(flags); err != nil {
		return nil, err
	}
	if need := pageHeader + p.count*elementSize; need > len(p.head) {
		if p.head, err = p.bytes(0, need); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// inlinePage is the page of a bucket so small that it lies in a value.
func inlinePage(b []byte) (*page, error) {
	if len(b) < pageHeader {
		return nil, fmt.Errorf("an inline page of %d bytes", len(b))
	}
	p := &page{head: b, size: len(b), count: int(order.Uint16(b[10:]))}
	if err := p.setFlags(order.Uint16(b[8:])); err != nil {
		return nil, err
	}
	if !p.leaf {
		return nil, errors.New("an inline page with branches")
	}
	return p, nil
}

func (p *page) setFlags(flags uint16) error {
	if flags != branchPage && flags != leafPage {
		return fmt.Errorf("page %d is of type %#x", p.id, flags)
	}
	p.leaf = flags == leafPage
	switch {
	case !p.leaf && p.count == 0:
		return fmt.Errorf("page %d has no branch", p.id)
	case pageHeader+p.count*elementSize > p.size:
		return fmt.Errorf("page %d has %d elements in %d bytes", p.id, p.count, p.size)
	}
	return nil
}

// bytes gives n bytes of the page: part of the head, or read for the caller.
func (p *page) bytes(at, n int) ([]byte, error) { return p.bytesIn(nil, at, n) }

func (p *page) bytesIn(a *arena, at, n int) ([]byte, error) {
	switch {
	case at < 0 || n < 0 || n > p.size || at > p.size-n:
		return nil, fmt.Errorf("page %d: bytes %d to %d of %d", p.id, at, at+n, p.size)
	case at+n <= len(p.head):
		return p.head[at : at+n : at+n], nil
	}
	b := a.takeBytes(n)
	if _, err := p.file.ReadAt(b, p.at+int64(at)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", p.id, err)
	}
	return b, nil
}

// element is where one key of a page lies, and its value or its child.
type element struct {
	key, keySize     int
	value, valueSize int
	flags            uint32
	child            uint64
}

func (p *page) element(i int) element {
	at := pageHeader + i*elementSize
	b := p.head[at : at+elementSize]
	if !p.leaf {
		return element{key: at + int(order.Uint32(b)), keySize: int(order.Uint32(b[4:])), child: order.Uint64(b[8:])}
	}
	e := element{flags: order.Uint32(b), key: at + int(order.Uint32(b[4:])), keySize: int(order.Uint32(b[8:]))}
	e.value, e.valueSize = e.key+e.keySize, int(order.Uint32(b[12:]))
	return e
}

func (p *page) key(i int) ([]byte, error) {
	e := p.element(i)
	if e.keySize == 0 {
		return nil, fmt.Errorf("page %d: key %d is empty", p.id, i)
	}
	return p.bytes(e.key, e.keySize)
}

// search finds the first element whose key is not below key.
func (p *page) search(key []byte) (i int, exact bool, err error) {
	low, high := 0, p.count
	for low < high {
		mid := (low + high) / 2
		k, err := p.key(mid)
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

// way finds the element of a branch under which key must be.
func (p *page) way(key []byte) (int, error) {
	i, exact, err := p.search(key)
	if !exact && i > 0 {
		i--
	}
	return i, err
}

// begins tells whether the first key lies right behind the elements, as bbolt lays it: if
// not, there are more or fewer elements than the page says, and what is not found may be
// there. An inline page is no longer than its keys.
func (p *page) begins() error {
	end := pageHeader + p.count*elementSize
	switch {
	case p.count > 0 && p.element(0).key != end:
		return fmt.Errorf("page %d: its keys begin at %d, and its %d elements end at %d", p.id, p.element(0).key, p.count, end)
	case p.count == 0 && p.at == 0 && p.size > end:
		return fmt.Errorf("an inline page without keys has %d bytes", p.size)
	}
	return nil
}

// check reads every element of the page, as bbolt does before it changes one.
func (p *page) check(high uint64) error {
	if err := p.begins(); err != nil {
		return err
	}
	var last []byte
	end := pageHeader + p.count*elementSize
	for i := range p.count {
		k, err := p.key(i)
		if err != nil {
			return err
		}
		if bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("page %d: key %d is out of order", p.id, i)
		}
		last = k
		e := p.element(i)
		if e.key != end {
			return fmt.Errorf("page %d: key %d begins at %d, and what is before it ends at %d", p.id, i, e.key, end)
		}
		end = e.key + e.keySize + e.valueSize
		if !p.leaf && (e.child < 2 || e.child >= high) {
			return fmt.Errorf("page %d leads to page %d of %d", p.id, e.child, high)
		}
		if e.valueSize > p.size || e.value > p.size-e.valueSize {
			return fmt.Errorf("page %d: value %d lies beyond its end", p.id, i)
		}
	}
	return nil
}

// checkFreelist holds the list of free pages against the file: bbolt would
// write over what it names.
func checkFreelist(f io.ReaderAt, m meta) error {
	p, flags, err := readHeader(f, m, m.freelist)
	if err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	if flags != freelistPage {
		return fmt.Errorf("free list: page %d is of type %#x", p.id, flags)
	}
	at, n := pageHeader, uint64(p.count)
	if n == 0xffff {
		first, err := p.bytes(at, 8)
		if err != nil {
			return fmt.Errorf("free list: %w", err)
		}
		at, n = at+8, order.Uint64(first)
	}
	if n > uint64(p.size-at)/8 {
		return fmt.Errorf("free list: %d pages in %d bytes", n, p.size)
	}
	ids, err := p.bytes(at, int(n)*8)
	if err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	for last := uint64(1); len(ids) > 0; ids = ids[8:] {
		id := order.Uint64(ids)
		if id <= last || id >= m.high || id >= p.id && id <= p.last || id == m.root {
			return fmt.Errorf("free list: page %d after page %d of %d", id, last, m.high)
		}
		last = id
	}
	return nil
}
