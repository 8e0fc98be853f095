package commit

import (
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// scan reads the record of a commit as parse does, several times as fast. It gives
// up on whatever is not quite as Write makes it, and parse then says what is
// wrong. author is the author of a commit before it, who mostly is the same.
func (c *Commit) scan(b []byte, author string) (has uint64, ok bool) { //nolint:funlen // one switch: a call for each field takes as long as the field
	const number, bytes = 0, 2
	var ms uint64
	for last := byte(0); len(b) > 0; {
		tag := b[0]
		var v uint64
		size := 1
		if len(b) > 1 && b[1] < 0x80 { // as most are
			v = uint64(b[1])
		} else {
			v, size = varint(b[1:])
		}
		if tag>>3 <= last || tag >= 0x80 || size == 0 || v == 0 {
			return 0, false
		}
		last, b = tag>>3, b[1+size:]
		var raw []byte
		if tag&7 == bytes {
			if v > uint64(len(b)) {
				return 0, false
			}
			raw, b = b[:v], b[v:]
		}
		switch tag {
		case fieldOp<<3 | number:
			c.Op, ok = Op(v), v < uint64(opEnd)
		case fieldKind<<3 | number:
			c.Kind, ok = content.Kind(v), v < 256
		case fieldRole<<3 | number:
			c.Role, ok = content.Role(v), v < 256
		case fieldIndex<<3 | number:
			c.Index, ok = int(v), v < 1<<31
		case fieldSize<<3 | number:
			c.Size, ok = int64(v), v < 1<<62
		case fieldTarget<<3 | bytes:
			ok = scanID(&c.Target, raw)
		case fieldPriority<<3 | number:
			c.Priority, ok = priority.Level(v), v <= uint64(priority.Pinned)
		case fieldTime<<3 | number:
			ms, ok = v, true
		case fieldAuthor<<3 | bytes:
			if ok = true; string(raw) == author {
				c.Author = author
			} else {
				c.Author = string(raw)
			}
		case fieldKey<<3 | bytes:
			c.Key.Text, ok = string(raw), true
		case fieldDepth<<3 | number:
			c.Depth, ok = v, true
		case fieldLinks<<3 | number:
			has, ok = v, v < 1<<3
		case fieldKeyKind<<3 | number:
			c.Key.Kind, ok = KeyKind(v), v < uint64(keyEnd)
		case fieldImporter<<3 | bytes:
			c.Key.Importer, ok = string(raw), true
		case fieldKeyBlock<<3 | number:
			c.Key.Block, ok = int(v), v < 1<<31
		default:
			ok = false
		}
		if !ok {
			return 0, false
		}
	}
	c.Time = time.UnixMilli(int64(ms>>1) ^ -int64(ms&1)).UTC()
	return has, true
}

func scanID(id *objects.ID, raw []byte) bool {
	return copy(id[:], raw) == len(raw) && len(raw) == len(id) && !id.IsZero()
}

// varint reads a number in the fewest bytes it can have; size 0: there is none.
func varint(b []byte) (v uint64, size int) {
	for shift := 0; size < len(b) && shift < 63; shift += 7 {
		c := b[size]
		size++
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			if c == 0 && size > 1 {
				return 0, 0
			}
			return v, size
		}
	}
	return 0, 0 // cut off, or so large that parse may look at it
}
