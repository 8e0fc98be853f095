package page

import (
	"bytes"
	"fmt"
	"iter"
)

// Scan yields the entries of a tree from a key on in ascending order, or, descending, those
// below the key in descending order. An error is the last element.
func (r *Reader) Scan(t Tree, from []byte, descending bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		p, err := r.Top(t)
		if err == nil {
			s := scan{reader: r, tree: t, from: from, descending: descending, yield: yield}
			_, err = s.visit(p, 0, true)
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// scan is the state of one Scan.
type scan struct {
	reader     *Reader
	tree       Tree
	from       []byte
	descending bool
	last       []byte // the key yielded last
	yield      func(Entry, error) bool
}

// visit scans a page and what is below it. If containsStart is set, the scan begins within them.
func (s *scan) visit(p *Page, depth int, containsStart bool) (more bool, err error) {
	if depth == MaxDepth {
		return false, fmt.Errorf("page %d: the tree has a cycle", p.ID)
	}
	first, step := 0, 1
	if s.descending {
		first, step = p.Count-1, -1
	}
	if containsStart {
		if first, err = s.firstIndex(p); err != nil {
			return false, err
		}
	}
	for i := first; i >= 0 && i < p.Count; i += step {
		if p.Leaf {
			more, err = s.visitEntry(p, i)
		} else {
			var child *Page
			if child, err = s.reader.readChild(p, i); err == nil {
				more, err = s.visit(child, depth+1, containsStart && i == first)
			}
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// firstIndex returns the index of the first element to visit of a page within which the scan begins. A
// descending scan that begins behind the last key of a leaf never reads the next leaf,
// which may begin with keys that the scan should have yielded; so it is checked here.
func (s *scan) firstIndex(p *Page) (int, error) {
	if !p.Leaf {
		return p.childIndex(s.from)
	}
	i, _, err := p.search(s.from)
	if !s.descending || err != nil {
		return i, err
	}
	if i == p.Count && p.ID != s.tree.Root {
		err = s.reader.checkNext(s.tree, s.from)
	}
	return i - 1, err
}

func (s *scan) visitEntry(p *Page, i int) (more bool, err error) {
	key, err := p.Key(i)
	if err != nil {
		return false, err
	}
	if s.last != nil && (bytes.Compare(s.last, key) < 0) == s.descending {
		return false, fmt.Errorf("page %d: key %d is out of order", p.ID, i)
	}
	s.last = key
	return s.yield(p.Entry(i, key), nil), nil
}
