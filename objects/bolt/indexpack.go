package bolt

import (
	"bytes"
	"encoding/binary"

	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// gc writes one run of this form, which is not merged with others:
//
//	chunk    sum u64; then for each entry how much the first 4 bytes of its id are
//	         above those of the entry before, or those in the key; pack; slot: varints
//
// Its key has the first 4 bytes of an id and 4 zeros. Four bytes suffice for millions of objects,
// since a search compares the whole id in the end.
const (
	denseRun    = 0x80 // the level of such a run
	densePrefix = 4
	denseChunk  = 2000 // bytes, so that two fill a page
)

// prefix returns how many bytes of an id the entries of a run have.
func (r run) prefix() int {
	if r.level == denseRun {
		return densePrefix
	}
	return indexPrefix
}

// truncateID returns a prefix of an id as far as the entries of a run have it.
func (r run) truncateID(begin []byte) []byte {
	n := r.prefix()
	if len(begin) <= n {
		return begin
	}
	return append(bytes.Clone(begin[:n]), make([]byte, len(begin)-n)...)
}

// encodeDense encodes a chunk of as many entries as fill it. Entries with one prefix stay in
// one chunk.
func encodeDense(r run, entries []indexEntry) (c journal.Change, n int) {
	key := append(r.key(), entries[0][:indexPrefix]...)
	value := make([]byte, 8, denseChunk+64)
	last := binary.BigEndian.Uint32(entries[0][:])
	for ; n < len(entries); n++ {
		e := entries[n]
		begin, at := binary.BigEndian.Uint32(e[:]), e.place()
		if len(value) > denseChunk-3*binary.MaxVarintLen32 && begin != last {
			break
		}
		for _, v := range []uint64{uint64(begin - last), uint64(at.pack), uint64(at.slot)} {
			value = binary.AppendUvarint(value, v)
		}
		last = begin
	}
	binary.BigEndian.PutUint64(value, checksum.Sum(key, value[8:]))
	return setKey(indexBucket, key, value), n
}

// decodeDense decodes a chunk, whose checksum is valid, into entries of the usual form.
func decodeDense(a *arena, key, b []byte) (entries []byte, ok bool) {
	begin := uint64(binary.BigEndian.Uint32(key[5:]))
	entries = a.takeBytes(len(b) / 3 * entrySize)[:0] // no entry takes less than 3 bytes
	for len(b) > 0 {
		var v [3]uint64
		for i := range v {
			n, size := binary.Uvarint(b)
			if size <= 0 {
				return nil, false
			}
			v[i], b = n, b[size:]
		}
		begin += v[0]
		if begin > 1<<32-1 || v[1] > 1<<32-1 || v[2] > 1<<16-1 {
			return nil, false
		}
		entries = binary.BigEndian.AppendUint64(entries, begin<<32)
		entries = binary.BigEndian.AppendUint32(entries, uint32(v[1]))
		entries = binary.BigEndian.AppendUint16(entries, uint16(v[2]))
	}
	return entries, len(entries) > 0
}
