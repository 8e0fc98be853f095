package page

import (
	"fmt"
	"io"
)

// ReadFreelist checks the list of free pages, whose pages bbolt would overwrite. It returns their
// ids in ascending order, and the page of the list itself.
func ReadFreelist(f io.ReaderAt, m Meta) (ids []uint64, list *Page, err error) {
	p, flags, err := readHeader(nil, f, m, m.Freelist)
	if err != nil {
		return nil, nil, fmt.Errorf("freelist: %w", err)
	}
	if flags != FreelistFlag {
		return nil, nil, fmt.Errorf("freelist: page %d has type %#x", p.ID, flags)
	}
	at, n := HeaderSize, uint64(p.Count)
	if n == 0xffff {
		first, err := p.Bytes(at, 8)
		if err != nil {
			return nil, nil, fmt.Errorf("freelist: %w", err)
		}
		at, n = at+8, Order.Uint64(first)
	}
	if n > uint64(p.Size-at)/8 {
		return nil, nil, fmt.Errorf("freelist: %d pages in %d bytes", n, p.Size)
	}
	b, err := p.Bytes(at, int(n)*8)
	if err != nil {
		return nil, nil, fmt.Errorf("freelist: %w", err)
	}
	ids = make([]uint64, n)
	last := uint64(1)
	for i := range ids {
		id := Order.Uint64(b[8*i:])
		if id <= last || id >= m.HighWater || id >= p.ID && id <= p.Last || id == m.Root {
			return nil, nil, fmt.Errorf("freelist: page %d follows page %d of %d", id, last, m.HighWater)
		}
		ids[i], last = id, id
	}
	return ids, p, nil
}
