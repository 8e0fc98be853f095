package bolt

import (
	"fmt"
	"os"
)

// wholeLeaf is the size of a leaf up to which all of it is read.
const wholeLeaf = 256 << 10

// leaves is a read of leaves with long values, all of which are wanted. Most are about as
// long as the one before: so one is mostly read at once.
type leaves struct {
	size int // of the last one; 0: there was none
}

// read reads a page, and of a leaf with long values these too, unless it is too large for
// that.
func (s *leaves) read(l *look, id uint64) (*page, error) {
	p, err := readPageIn(l.arena, l.file, l.meta, id, s.size)
	if err != nil || !p.leaf || p.size > wholeLeaf {
		return p, err
	}
	if have := len(p.head); have < p.size {
		p.head = l.arena.resize(p.head, p.size)
		if _, err := l.file.ReadAt(p.head[have:], p.at+int64(have)); err != nil {
			return nil, fmt.Errorf("read page %d: %w", id, err)
		}
	}
	if p.size > l.meta.pageSize {
		s.size = p.size
	}
	return p, nil
}

// warmHeads is how many times the system is not told what heads will be read, once it had
// them: to ask takes as long as to read some of them.
const warmHeads = 15

// willRead tells the system that heads from a place on will be read.
func (s *scanning) willRead(f *os.File, n int64) {
	if s.warm > 0 {
		s.warm--
	} else if !willRead(f, s.heads, n) {
		s.warm = warmHeads
	}
}
