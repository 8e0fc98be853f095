package page

import "fmt"

// Entry is a key with its value: of a leaf, whose value is read on demand, or in memory.
type Entry struct {
	Key []byte
	Element
	page   *Page // nil: the value is in memory
	memory []byte
}

// MemoryEntry returns an entry whose value is in memory.
func MemoryEntry(key, value []byte) Entry {
	return Entry{Key: key, Element: Element{ValueSize: len(value)}, memory: value}
}

// Entry returns element i of a leaf as an entry.
func (p *Page) Entry(i int, key []byte) Entry { return Entry{Key: key, Element: p.Element(i), page: p} }

// Page returns the page of the entry, or nil if the value is in memory.
func (e Entry) Page() *Page { return e.page }

// Value returns the value, which is never nil. A nested bucket is an error.
func (e Entry) Value() ([]byte, error) { return e.ValueIn(nil) }

// ValueIn is Value in the memory of an arena.
func (e Entry) ValueIn(a *Arena) ([]byte, error) {
	if e.Flags != 0 {
		return nil, fmt.Errorf("page %d: a bucket in place of a value", e.page.ID)
	}
	return e.Raw(a)
}

// Raw returns the value, also that of a nested bucket.
func (e Entry) Raw(a *Arena) ([]byte, error) {
	if e.page == nil {
		return e.memory, nil
	}
	b, err := e.page.bytesIn(a, e.ValueAt, e.ValueSize)
	if b == nil && err == nil {
		b = []byte{}
	}
	return b, err
}

// Part returns n bytes of the value from an offset.
func (e Entry) Part(at, n int) ([]byte, error) {
	if e.page == nil {
		if at < 0 || n < 0 || at > len(e.memory)-n {
			return nil, fmt.Errorf("bytes %d to %d of a value of %d", at, at+n, len(e.memory))
		}
		return e.memory[at : at+n : at+n], nil
	}
	if e.Flags != 0 || at < 0 || n < 0 || at > e.ValueSize-n {
		return nil, fmt.Errorf("page %d: bytes %d to %d of a value of %d", e.page.ID, at, at+n, e.ValueSize)
	}
	return e.page.Bytes(e.ValueAt+at, n)
}
