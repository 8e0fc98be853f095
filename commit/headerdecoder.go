package commit

import (
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// decodeHeaderFast sets the fields of c from the record of an ordinary commit, and returns the
// bits of its links. c must be new. ok is false for every other record, valid or not: c is then
// undefined, and decodeHeader has to read the record. A string equal to lastAuthor is not
// allocated.
//
// It is a second decoder because a walk is mostly the decoding of headers: BenchmarkParse shows
// it more than twice as fast as decodeHeader. FuzzDecodeHeaderFast compares the two.
func (c *Commit) decodeHeaderFast(record []byte, lastAuthor string) (links uint64, ok bool) { //nolint:funlen // one switch: a call for each field takes as long as the field
	const varint, bytes = 0, 2 // the wire types, in the low three bits of a tag
	var zigzag uint64
	for lastField := byte(0); len(record) > 0; {
		tag := record[0]
		v, size := canonical.Varint(record[1:])
		if tag>>3 <= lastField || tag >= 0x80 || size == 0 || v == 0 {
			return 0, false
		}
		lastField, record = tag>>3, record[1+size:]
		var raw []byte
		if tag&7 == bytes {
			if v > uint64(len(record)) {
				return 0, false
			}
			raw, record = record[:v], record[v:]
		}
		switch tag {
		case fieldOp<<3 | varint:
			c.Op, ok = Op(v), v < uint64(opEnd)
		case fieldKind<<3 | varint:
			c.Kind, ok = content.Kind(v), v < 256
		case fieldRole<<3 | varint:
			c.Role, ok = content.Role(v), v < 256
		case fieldIndex<<3 | varint:
			c.Index, ok = int(v), v < 1<<31
		case fieldSize<<3 | varint:
			c.Size, ok = int64(v), v < 1<<62
		case fieldTarget<<3 | bytes:
			ok = len(raw) == copy(c.Target[:], raw) && len(raw) == len(c.Target) && c.Target != objects.ID{}
		case fieldPriority<<3 | varint:
			c.Priority, ok = priority.Level(v), v <= uint64(priority.Pinned)
		case fieldTime<<3 | varint:
			zigzag, ok = v, true
		case fieldAuthor<<3 | bytes:
			if ok = true; string(raw) == lastAuthor {
				c.Author = lastAuthor
			} else {
				c.Author = string(raw)
			}
		case fieldKey<<3 | bytes:
			c.Key.Text, ok = string(raw), true
		case fieldDepth<<3 | varint:
			c.Depth, ok = v, true
		case fieldLinks<<3 | varint:
			links, ok = v, v < 1<<3
		case fieldKeyKind<<3 | varint:
			c.Key.Kind, ok = KeyKind(v), v < uint64(keyEnd)
		case fieldImporter<<3 | bytes:
			c.Key.Importer, ok = string(raw), true
		case fieldKeyBlock<<3 | varint:
			c.Key.Block, ok = int(v), v < 1<<31
		default:
			ok = false
		}
		if !ok {
			return 0, false
		}
	}
	c.Time = time.UnixMilli(int64(zigzag>>1) ^ -int64(zigzag&1)).UTC()
	return links, true
}
