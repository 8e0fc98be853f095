// Package salvage finds keys and values in the pages of a bbolt file and in the frames of a
// journal to which nothing leads any more. It believes no number that it reads: the caller
// keeps a value only if its hash or its checksum is right.
package salvage

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// Element is a key with its value, or with the place of the value in the file.
type Element struct {
	Key, Value []byte
	At, Size   int64 // of the value in the file, if Value is nil
}

// Read returns the value, or what can be read of it.
func (e Element) Read(f io.ReaderAt) []byte {
	if e.Value != nil {
		return e.Value
	}
	b := make([]byte, e.Size)
	n, _ := f.ReadAt(b, e.At) // what cannot be read is lost
	return b[:n]
}

// Pages and keys of a store are never larger.
const (
	maxPage = 8 << 20
	maxKey  = 300
)

// scanner is the state of one Pages.
type scanner struct {
	file     io.ReaderAt
	size     int64
	pageSize int
	key      [maxKey]byte
	found    func(Element) error
}

// Pages takes every page of a file of a size for a leaf, whatever type its header has, and calls
// found with all that its elements may be. The key, and a value that is given, are valid until
// found returns. pageSize is 0 if it is not known.
func Pages(ctx context.Context, f io.ReaderAt, size int64, pageSize int, found func(Element) error) error {
	if pageSize == 0 {
		pageSize = guessPageSize(f, size)
	}
	s := scanner{file: f, size: size, pageSize: pageSize, found: found}
	b := make([]byte, pageSize)
	for at := int64(0); at < size; at += int64(pageSize) {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, _ := f.ReadAt(b, at) // what cannot be read is lost
		if err := s.page(b[:n], at); err != nil {
			return err
		}
	}
	return nil
}

// guessPageSize returns the size with which most pages have the id that they state.
func guessPageSize(f io.ReaderAt, size int64) int {
	best, most := int64(4096), 0
	var head [8]byte
	for pageSize := int64(page.MinSize); pageSize <= 64<<10; pageSize *= 2 {
		fit := 0
		for id := int64(2); id < 1000 && id*pageSize < size; id++ {
			if _, err := f.ReadAt(head[:], id*pageSize); err == nil && page.Order.Uint64(head[:]) == uint64(id) {
				fit++
			}
		}
		if fit > most {
			best, most = pageSize, fit
		}
	}
	return int(best)
}

// element is an element of a leaf as the leaf describes it: offsets in the page.
type element struct{ begin, keySize, size int64 }

func (e element) plausible(table int64) bool {
	return e.begin >= table && e.begin <= maxPage && e.keySize > 0 && e.keySize <= maxKey && e.size <= maxPage
}

// elements returns the elements of a leaf that has count of them according to its header, and
// further ones that are plausible.
func elements(b []byte, count int) (all []element) {
	for i := 0; page.HeaderSize+(i+1)*page.ElementSize <= len(b); i++ {
		from := int64(page.HeaderSize + i*page.ElementSize)
		e := b[from:]
		one := element{from + int64(page.Order.Uint32(e[4:])), int64(page.Order.Uint32(e[8:])), int64(page.Order.Uint32(e[12:]))}
		if i >= count && !one.plausible(from+page.ElementSize) {
			break
		}
		all = append(all, one)
	}
	return all
}

// isPlausible reports whether a page may begin at an offset: its id is right, or its type is that of a leaf, or
// its first element may be one. Without this check the middle of each large value would be taken for a page
// with values of up to maxPage, and a salvage would read thousands of times the size of the file.
func (s *scanner) isPlausible(b []byte, at int64, all []element) bool {
	return at < 0 || int64(page.Order.Uint64(b))*int64(s.pageSize) == at || page.Order.Uint16(b[8:]) == page.LeafFlag ||
		len(all) > 0 && all[0].plausible(page.HeaderSize+page.ElementSize)
}

// page finds the elements of a page. An element is believed as far as it lies in the file; and
// since each begins where the one before it ends, one with a damaged description is also
// looked for there. An inline page has no offset in the file: at is negative.
func (s *scanner) page(b []byte, at int64) error {
	if len(b) < page.HeaderSize {
		return nil
	}
	count := int(page.Order.Uint16(b[10:]))
	all := elements(b, count)
	if !s.isPlausible(b, at, all) {
		return nil
	}
	table := int64(page.HeaderSize + min(max(count, 1), len(all))*page.ElementSize)
	whole := min(int64(1+page.Order.Uint32(b[12:]))*int64(len(b)), maxPage)
	end := table // of the element before
	for i, e := range all {
		next := whole
		if i+1 < min(count, len(all)) && all[i+1].plausible(table) {
			next = all[i+1].begin
		}
		for _, keySize := range []int64{4, 32} { // of the number of a pack, and of an id
			for _, size := range []int64{next - end - keySize, e.size} {
				guess := element{end, keySize, size}
				if guess == e || size <= 0 || !guess.plausible(table) {
					continue
				}
				if err := s.element(b, at, guess); err != nil {
					return err
				}
			}
		}
		if end = next; !e.plausible(0) {
			continue
		}
		if err := s.element(b, at, e); err != nil {
			return err
		}
		end = e.begin + e.keySize + e.size
	}
	return nil
}

// element reads the key of an element whose value is in the page, or behind it in the file.
func (s *scanner) element(b []byte, at int64, e element) error {
	value := e.begin + e.keySize
	if value+e.size <= int64(len(b)) {
		one := Element{Key: b[e.begin:value], Value: b[value : value+e.size]}
		if v := one.Value; len(v) > 2*page.HeaderSize && page.Order.Uint64(v) == 0 && at >= 0 { // perhaps an inline bucket
			if err := s.page(v[page.HeaderSize:], -1); err != nil {
				return err
			}
		}
		return s.found(one)
	}
	if at < 0 || at+value >= s.size {
		return nil
	}
	key := s.key[:e.keySize]
	if _, err := s.file.ReadAt(key, at+e.begin); err != nil {
		return nil //nolint:nilerr // it is lost
	}
	return s.found(Element{Key: key, At: at + value, Size: min(e.size, s.size-at-value)})
}

// Journal calls found with what the frames of a journal set, of whatever generation; of a
// damaged frame, with the changes before the damage. buckets is the number of buckets.
func Journal(b []byte, buckets int, found func(Element) error) error {
	for at := journal.Start; at+journal.FrameHeader <= len(b); at += journal.Alignment {
		if string(b[at:at+4]) != journal.Magic {
			continue
		}
		payload := b[at+journal.FrameHeader:]
		size := min(int(binary.BigEndian.Uint32(b[at+4:])), len(payload))
		list, _ := journal.ParseChanges(payload[:size], buckets)
		for _, c := range list {
			if c.Value == nil {
				continue
			}
			if err := found(Element{Key: c.Key, Value: c.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}
