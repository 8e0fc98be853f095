// Package index is the format of the index of a store, which maps the ids of objects to packs.
//
// The index consists of runs, as in a log-structured merge tree: a checkpoint writes one run of
// sorted entries, and Fan runs of a level are merged into one of the next. So an entry is written
// once for each level, and a search reads few runs. The index can be rebuilt from the packs.
//
//	entry    the first 4 bytes of an id, pack u32, row u16
//	chunk    sum u64; then for each entry how much the first 4 bytes of its id are
//	         above those of the entry before, or those in the key; pack; row: varints
//	key      of a chunk: level (one byte), number of the run u32, the first 4 bytes
//	         of the first id
//	runs     a record: 1 level, number and entries of each run, the oldest first;
//	         2 number of the last run
//
// Entries that begin alike are in one chunk. Four bytes suffice for millions of objects, since
// whoever finds an entry compares the whole id.
package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

const (
	// Fan is how many runs of a level are merged into one of the next.
	Fan = 4
	// RunKeySize is the length of what the keys of the chunks of one run begin with.
	RunKeySize = 1 + 4

	prefixSize = 4
	chunkSize  = 2000 // bytes, so that two fill a page, which bbolt does not go below
	levelSize  = 4096 // entries of a run of level 0
	maxLevel   = 0xff
)

// Entry says where an object is: in which row of which pack.
type Entry struct {
	Prefix uint32 // the first 4 bytes of its id
	Pack   uint32
	Row    uint16
}

// Prefix returns what an entry has of an id, of which a part is enough.
func Prefix(id []byte) uint32 {
	var b [prefixSize]byte
	copy(b[:], id)
	return binary.BigEndian.Uint32(b[:])
}

// Compare orders entries.
func (e Entry) Compare(f Entry) int {
	if e.Prefix != f.Prefix { // as nearly always
		return cmp.Compare(e.Prefix, f.Prefix)
	}
	return cmp.Or(cmp.Compare(e.Pack, f.Pack), cmp.Compare(e.Row, f.Row))
}

// Search returns the place of the first entry that is not below a prefix.
func Search(entries []Entry, prefix uint32) int {
	i, _ := slices.BinarySearchFunc(entries, prefix, func(e Entry, prefix uint32) int { return cmp.Compare(e.Prefix, prefix) })
	return i
}

// Run is a sorted list of entries.
type Run struct {
	Level, Number, Entries uint64
}

// Level returns the level of a run of so many entries that was merged of no others.
func Level(entries int) (level uint64) {
	for size := levelSize; size < entries; size *= Fan {
		level++
	}
	return level
}

// Key returns what the keys of the chunks of r begin with.
func (r Run) Key() []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(r.Level)}, uint32(r.Number))
}

// ChunkKey returns the key of the chunk of r that begins with a prefix.
func (r Run) ChunkKey(prefix uint32) []byte { return binary.BigEndian.AppendUint32(r.Key(), prefix) }

// ParseKey returns the level and the number of the run to which the chunk under a key belongs.
func ParseKey(key []byte) (r Run, err error) {
	if len(key) != RunKeySize+prefixSize {
		return r, fmt.Errorf("a chunk with the key %x", key)
	}
	return Run{Level: uint64(key[0]), Number: uint64(binary.BigEndian.Uint32(key[1:]))}, nil
}

// Encode sorts entries and passes the chunks that they make to add.
func (r Run) Encode(entries []Entry, add func(key, value []byte)) {
	slices.SortFunc(entries, Entry.Compare)
	for len(entries) > 0 {
		last, n := entries[0].Prefix, 0
		key, value := r.ChunkKey(last), make([]byte, checksum.Size, chunkSize+3*binary.MaxVarintLen32)
		for ; n < len(entries) && (len(value) < chunkSize || entries[n].Prefix == last); n++ {
			e := entries[n]
			for _, v := range [...]uint32{e.Prefix - last, e.Pack, uint32(e.Row)} {
				value = binary.AppendUvarint(value, uint64(v))
			}
			last = e.Prefix
		}
		binary.BigEndian.PutUint64(value, checksum.Sum(key, value[checksum.Size:]))
		add(key, value)
		entries = entries[n:]
	}
}

// Decode checks a chunk and appends its entries to a list, in ascending order; there is one at least.
func Decode(list []Entry, key, value []byte) (entries []Entry, err error) {
	if len(key) != RunKeySize+prefixSize || len(value) <= checksum.Size || binary.BigEndian.Uint64(value) != checksum.Sum(key, value[checksum.Size:]) {
		return nil, damagedError(key)
	}
	last := Entry{Prefix: binary.BigEndian.Uint32(key[RunKeySize:])}
	b := value[checksum.Size:]
	entries = slices.Grow(list, len(b)/4)
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		pack, m := binary.Uvarint(b)
		b = b[max(m, 0):]
		row, k := binary.Uvarint(b)
		b = b[max(k, 0):]
		if min(n, m, k) <= 0 || delta > 1<<32-1-uint64(last.Prefix) || pack > 1<<32-1 || row > 1<<16-1 {
			return nil, damagedError(key)
		}
		e := Entry{last.Prefix + uint32(delta), uint32(pack), uint16(row)}
		if len(entries) == len(list) && delta != 0 || e.Compare(last) < 0 {
			return nil, damagedError(key)
		}
		entries, last = append(entries, e), e
	}
	return entries, nil
}

func damagedError(key []byte) error { return fmt.Errorf("the chunk %x is damaged", key) }

// Runs is all runs of a store.
type Runs struct {
	List []Run  // the oldest first
	Last uint64 // the highest number that a run has had
}

// Fields writes the fields of the record of r, or reads them.
func (r *Runs) Fields(record *canonical.Record) {
	var numbers []uint64
	for _, one := range r.List {
		numbers = append(numbers, one.Level, one.Number, one.Entries)
	}
	record.Uints(1, &numbers)
	record.Uint(2, &r.Last)
	if len(numbers)%3 != 0 {
		record.Refuse("half a run")
	}
	r.List = nil
	for ; len(numbers) > 2; numbers = numbers[3:] {
		one := Run{numbers[0], numbers[1], numbers[2]}
		if one.Level > maxLevel || one.Number > r.Last || one.Number > 1<<32-1 {
			record.Refuse(fmt.Sprintf("run %d of level %d", one.Number, one.Level))
		}
		r.List = append(r.List, one)
	}
}

// Has reports whether a chunk belongs to r.
func (r Run) Has(key []byte) bool { return bytes.HasPrefix(key, r.Key()) }
