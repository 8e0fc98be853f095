package bolt

import (
	"bytes"
	"fmt"
	"iter"
)

// ascend yields the entries of a bucket from key on, in ascending order.
func (l *look) ascend(bucket string, key []byte) iter.Seq2[entry, error] {
	return l.merged(bucket, key, false)
}

// descend yields the entries of a bucket below key, in descending order.
func (l *look) descend(bucket string, key []byte) iter.Seq2[entry, error] {
	return l.merged(bucket, key, true)
}

// scanTree yields what the file has.
func (l *look) scanTree(bucket string, from []byte, down bool) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		t, err := l.bucket(bucket)
		if err != nil {
			yield(entry{}, err)
			return
		}
		l.scanOf(t, from, down)(yield)
	}
}

func (l *look) scanOf(t tree, from []byte, down bool) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		p, err := l.top(t)
		if err == nil {
			s := scan{look: l, tree: t, from: from, down: down, yield: yield}
			_, err = s.visit(p, 0, true)
		}
		if err != nil {
			yield(entry{}, err)
		}
	}
}

// scan is one walk over a tree.
type scan struct {
	look  *look
	tree  tree
	from  []byte
	down  bool
	last  []byte // the key yielded last: the next must be beyond it
	yield func(entry, error) bool
}

// visit walks over a page and what is below it. At the edge, from may lie in it.
func (s *scan) visit(p *page, depth int, edge bool) (more bool, err error) {
	if depth == maxDepth {
		return false, fmt.Errorf("page %d: the tree goes in a circle", p.id)
	}
	first, step := 0, 1
	if s.down {
		first, step = p.count-1, -1
	}
	if edge {
		if first, err = s.start(p); err != nil {
			return false, err
		}
	}
	for i := first; i >= 0 && i < p.count; i += step {
		if p.leaf {
			more, err = s.give(p, i)
		} else {
			var child *page
			if child, err = s.look.child(p, i); err == nil {
				more, err = s.visit(child, depth+1, edge && i == first)
			}
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// start finds the first element of a page at the edge. Who goes down from behind the last
// of a leaf never comes to the next, which may have some that are left out.
func (s *scan) start(p *page) (int, error) {
	if !p.leaf {
		return p.way(s.from)
	}
	i, _, err := p.search(s.from)
	if !s.down || err != nil {
		return i, err
	}
	if i == p.count && p.id != s.tree.root {
		err = s.look.behind(s.tree, s.from)
	}
	return i - 1, err
}

func (s *scan) give(p *page, i int) (more bool, err error) {
	key, err := p.key(i)
	if err != nil {
		return false, err
	}
	if s.last != nil && (bytes.Compare(s.last, key) < 0) == s.down {
		return false, fmt.Errorf("page %d: key %d is out of order", p.id, i)
	}
	s.last = key
	return s.yield(entry{key: key, page: p, element: p.element(i)}, nil), nil
}

// behind looks at the leaf behind the one in which all keys are below key. A branch that
// says too much of where that one begins led here, and is found out by it. One that says
// too little leads to a page that does not begin so: no leaf has to be held against the
// one before it.
func (l *look) behind(t tree, key []byte) error {
	for _, err := range l.scanOf(t, key, false) {
		return err
	}
	return nil
}
