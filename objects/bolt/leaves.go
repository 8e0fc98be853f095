package bolt

import "fmt"

const (
	// wholeLeaf is the size of a leaf up to which all of it is read.
	wholeLeaf = 256 << 10
	// leafReach is how many leaves from the last one is taken for one of the same kind.
	leafReach = 4
)

// leaves is a read of leaves with long values, all of which are wanted. Those of one fold
// lie beside one another, and are about as long: so one is mostly read at once.
type leaves struct {
	last uint64 // the page that was read last
	size int    // of it
}

// read reads a page, and of a leaf with long values these too, unless it is too large for
// that.
func (s *leaves) read(l *look, id uint64) (*page, error) {
	first := 0
	if reach := uint64(leafReach * s.size / l.meta.pageSize); id+reach >= s.last && id <= s.last+reach {
		first = s.size
	}
	p, err := readPageIn(l.arena, l.file, l.meta, id, first)
	if err != nil || !p.leaf || p.size > wholeLeaf {
		return p, err
	}
	if have := len(p.head); have < p.size {
		p.head = l.arena.resize(p.head, p.size)
		if _, err := l.file.ReadAt(p.head[have:], p.at+int64(have)); err != nil {
			return nil, fmt.Errorf("read page %d: %w", id, err)
		}
	}
	s.last, s.size = id, p.size
	return p, nil
}
