package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDepth is more levels than a tree of 2^63 pages has; a deeper one is a circle.
const maxDepth = 24

// keepPages is how many pages a look remembers.
const keepPages = 1024

// look reads the trees of a file as they were after one transaction. It is for
// one goroutine.
type look struct {
	file     io.ReaderAt
	meta     meta
	number   uint64    // of the file; see Spot
	over     *overlay  // what the journal says; nil: nothing
	seen     mark      // of it
	staged   []*staged // what will be put next
	pages    map[uint64]*page
	packs    map[uint32]*pack
	headLeaf *page // with a head that was found last; nil: none
	lastBody begunBody
	bodies   *opened
	index    *runs     // nil: not read yet
	scan     *scanning // of many packs; nil: it is of few
	arena    *arena    // for what is read of packs; nil: it is kept
	buckets  map[string]tree
}

func newLook(f io.ReaderAt, m meta) *look {
	return &look{file: f, meta: m, pages: map[uint64]*page{}, buckets: map[string]tree{}, bodies: &opened{}}
}

// tree is a bucket: by its root, or inline in the tree of buckets.
type tree struct {
	root   uint64
	inline *page
}

func (l *look) page(id uint64) (*page, error) {
	if p, ok := l.pages[id]; ok {
		return p, nil
	}
	p, err := readPageIn(l.arena, l.file, l.meta, id)
	if err == nil {
		err = p.begins()
	}
	if err != nil {
		return nil, err
	}
	if len(l.pages) == keepPages {
		clear(l.pages)
	}
	l.pages[id] = p
	return p, nil
}

func (l *look) top(t tree) (*page, error) {
	if t.inline != nil {
		return t.inline, nil
	}
	p, err := l.page(t.root)
	if err == nil && p.count == 0 && t.root != l.meta.root {
		return nil, fmt.Errorf("page %d is empty", p.id) // it would be inline
	}
	return p, err
}

// leaf goes down to the leaf in which key is, or would be.
func (l *look) leaf(t tree, key []byte) (*page, error) {
	p, err := l.top(t)
	for depth := 0; err == nil && !p.leaf; depth++ {
		if depth == maxDepth {
			return nil, fmt.Errorf("page %d: the tree goes in a circle", p.id)
		}
		i, e := p.way(key)
		if e != nil {
			return nil, e
		}
		p, err = l.child(p, i)
	}
	return p, err
}

// child reads the page under an element of a branch. Both have the same first
// key: bbolt finds the one by the other, and a branch that leads elsewhere shows.
func (l *look) child(p *page, i int) (*page, error) {
	c, err := l.page(p.element(i).child)
	if err != nil {
		return nil, err
	}
	if c.count == 0 {
		return nil, fmt.Errorf("page %d is empty", c.id)
	}
	want, err := p.key(i)
	if err != nil {
		return nil, err
	}
	got, err := c.key(0)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(got, want) {
		return nil, fmt.Errorf("page %d does not begin as page %d says", c.id, p.id)
	}
	return c, nil
}

// find gives the entry with exactly that key.
func (l *look) find(t tree, key []byte) (entry, bool, error) {
	p, err := l.leaf(t, key)
	if err != nil {
		return entry{}, false, err
	}
	i, exact, err := p.search(key)
	if err == nil && !exact {
		err = l.absent(t, p, i, key)
	}
	if err != nil || !exact {
		return entry{}, false, err
	}
	return entry{key: key, page: p, element: p.element(i)}, true, nil
}

// absent tells whether a key that would be element i of a leaf, and is not, can be said not
// to be there: the leaf must make sense, and the key must lie before what comes behind it.
func (l *look) absent(t tree, p *page, i int, key []byte) error {
	if !p.sound.Load() {
		if err := p.check(l.meta.high); err != nil {
			return err
		}
		p.sound.Store(true)
	}
	if i < p.count || p.id == t.root {
		return nil
	}
	return l.behind(t, key)
}

// errNoBucket says that the file is sound and not a store.
var errNoBucket = errors.New("no such bucket")

// bucket opens a bucket by name.
func (l *look) bucket(name string) (tree, error) {
	if t, ok := l.buckets[name]; ok {
		return t, nil
	}
	e, ok, err := l.find(tree{root: l.meta.root}, []byte(name))
	if err != nil {
		return tree{}, err
	}
	if !ok || e.flags != subBucket {
		if name != metaBucket { // which was there when the file was opened
			return tree{}, fmt.Errorf("bucket %q is not there", name)
		}
		return tree{}, fmt.Errorf("%w: %q", errNoBucket, name)
	}
	b, err := e.bytes()
	if err != nil {
		return tree{}, err
	}
	if len(b) < pageHeader {
		return tree{}, fmt.Errorf("bucket %q: a header of %d bytes", name, len(b))
	}
	t := tree{root: order.Uint64(b)}
	if t.root == 0 {
		if t.inline, err = inlinePage(b[pageHeader:]); err == nil {
			err = t.inline.begins()
		}
		if err != nil {
			return tree{}, fmt.Errorf("bucket %q: %w", name, err)
		}
	}
	l.buckets[name] = t
	return t, nil
}

// get gives the value of a key of a bucket; nil when there is none.
func (l *look) get(bucket string, key []byte) ([]byte, error) {
	if l.over != nil {
		if value, edited := l.over.get(bucketNumber(bucket), key, &l.seen); edited {
			return value, nil
		}
	}
	t, err := l.bucket(bucket)
	if err != nil {
		return nil, err
	}
	e, ok, err := l.find(t, key)
	if err != nil || !ok {
		return nil, err
	}
	return e.value()
}

// entry is one key of a leaf, whose value is read when asked for, or of the
// journal.
type entry struct {
	key  []byte
	page *page // nil: of the journal
	over []byte
	element
}

func (e entry) value() ([]byte, error) { return e.valueIn(nil) }

func (e entry) valueIn(a *arena) ([]byte, error) {
	if e.page == nil {
		return e.over, nil
	}
	if e.flags != 0 {
		return nil, fmt.Errorf("page %d: a bucket in the place of a value", e.page.id)
	}
	return e.bytesIn(a)
}

// inHead tells whether the value was read with the head of its page.
func (e entry) inHead() bool { return e.page != nil && e.element.value+e.valueSize <= len(e.page.head) }

// first is the first byte of the value, if it has one.
func (e entry) first() ([]byte, error) {
	if e.page == nil {
		return e.over[:min(1, len(e.over))], nil
	}
	return e.page.bytes(e.element.value, min(1, e.valueSize))
}

// part is a piece of the value.
func (e entry) part(at, n int) ([]byte, error) {
	if e.flags != 0 || at < 0 || n < 0 || at > e.valueSize-n {
		return nil, fmt.Errorf("page %d: bytes %d to %d of a value of %d", e.page.id, at, at+n, e.valueSize)
	}
	return e.page.bytes(e.element.value+at, n)
}

// bytes is never nil, so that an empty value is not taken for none.
func (e entry) bytes() ([]byte, error) { return e.bytesIn(nil) }

func (e entry) bytesIn(a *arena) ([]byte, error) {
	b, err := e.page.bytesIn(a, e.element.value, e.valueSize)
	if b == nil && err == nil {
		b = []byte{}
	}
	return b, err
}

// guard checks whatever bbolt will read and rewrite when it changes a key: the
// pages from the root to its leaf, and their neighbours, with which it may join
// them. seen holds the pages known to be good.
func (l *look) guard(t tree, key []byte, seen map[uint64]bool) error {
	p, err := l.top(t)
	if err != nil {
		return err
	}
	if t.inline != nil || !seen[p.id] {
		if err := p.check(l.meta.high); err != nil {
			return err
		}
	}
	for depth := 0; ; depth++ {
		if seen[p.id] = true; p.leaf {
			return nil
		}
		if depth == maxDepth {
			return fmt.Errorf("page %d: the tree goes in a circle", p.id)
		}
		i, err := p.way(key)
		if err != nil {
			return err
		}
		for k := max(i-1, 0); k <= min(i+1, p.count-1); k++ {
			if err := l.guardChild(p, k, seen); err != nil {
				return err
			}
		}
		if p, err = l.page(p.element(i).child); err != nil {
			return err
		}
	}
}

func (l *look) guardChild(p *page, i int, seen map[uint64]bool) error {
	id := p.element(i).child
	if seen[id] {
		return nil
	}
	child, err := l.child(p, i)
	if err == nil {
		err = child.check(l.meta.high)
	}
	seen[id] = err == nil
	return err
}
