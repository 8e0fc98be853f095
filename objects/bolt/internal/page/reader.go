package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxDepth is more levels than a tree of 2^63 pages has: a deeper tree has a cycle.
const MaxDepth = 24

// cachePages is how many pages a reader keeps.
const cachePages = 1024

// ErrNoBucket is returned for a bucket that does not exist.
var ErrNoBucket = errors.New("no such bucket")

// Reader reads the buckets of a file as they are in one transaction. It is for one
// goroutine.
type Reader struct {
	File  io.ReaderAt
	Meta  Meta
	Arena *Arena // memory for what is read; nil: each piece is allocated

	pages map[uint64]*Page
	trees map[string]Tree
}

// NewReader returns a reader of a file in the state of m.
func NewReader(f io.ReaderAt, m Meta) *Reader {
	return &Reader{File: f, Meta: m, pages: map[uint64]*Page{}, trees: map[string]Tree{}}
}

// Tree is the B+tree of a bucket: a root page, or one page in the value of the bucket.
type Tree struct {
	Root   uint64
	Inline *Page
}

// ParseTree parses the value of a bucket.
func ParseTree(b []byte) (t Tree, err error) {
	if len(b) < HeaderSize {
		return t, fmt.Errorf("a bucket header of %d bytes", len(b))
	}
	if t.Root = Order.Uint64(b); t.Root == 0 {
		t.Inline, err = parseInline(b[HeaderSize:])
	}
	return t, err
}

// Bucket returns the tree of a bucket.
func (r *Reader) Bucket(name string) (Tree, error) {
	if t, ok := r.trees[name]; ok {
		return t, nil
	}
	e, ok, err := r.Find(r.Root(), []byte(name))
	if err != nil {
		return Tree{}, err
	}
	if !ok || e.Flags != BucketFlag {
		return Tree{}, fmt.Errorf("%w: %q", ErrNoBucket, name)
	}
	b, err := e.Raw(nil)
	if err != nil {
		return Tree{}, err
	}
	t, err := ParseTree(b)
	if err == nil && t.Inline != nil {
		err = t.Inline.CheckFirstKey()
	}
	if err != nil {
		return Tree{}, fmt.Errorf("bucket %q: %w", name, err)
	}
	r.trees[name] = t
	return t, nil
}

// Root returns the tree of the buckets.
func (r *Reader) Root() Tree { return Tree{Root: r.Meta.Root} }

// Page reads a page or returns it from the cache.
func (r *Reader) Page(id uint64) (*Page, error) {
	if p, ok := r.pages[id]; ok {
		return p, nil
	}
	p, err := openPage(r.Arena, r.File, r.Meta, id)
	if err == nil {
		err = p.CheckFirstKey()
	}
	if err != nil {
		return nil, err
	}
	if len(r.pages) == cachePages {
		clear(r.pages)
	}
	r.pages[id] = p
	return p, nil
}

// Top returns the root page of a tree.
func (r *Reader) Top(t Tree) (*Page, error) {
	if t.Inline != nil {
		return t.Inline, nil
	}
	p, err := r.Page(t.Root)
	if err == nil && p.Count == 0 && t.Root != r.Meta.Root {
		return nil, fmt.Errorf("page %d is empty", p.ID) // the bucket would be inline
	}
	return p, err
}

// findLeaf returns the leaf to which key belongs. On the way it calls visitBranch, unless that is nil,
// with each branch and the element of it that leads to the leaf.
func (r *Reader) findLeaf(t Tree, key []byte, visitBranch func(p *Page, i int) error) (leaf *Page, err error) {
	p, err := r.Top(t)
	for depth := 0; err == nil && !p.Leaf; depth++ {
		if depth == MaxDepth {
			return nil, fmt.Errorf("page %d: the tree has a cycle", p.ID)
		}
		i, err2 := p.childIndex(key)
		if err2 == nil && visitBranch != nil {
			err2 = visitBranch(p, i)
		}
		if err2 != nil {
			return nil, err2
		}
		p, err = r.readChild(p, i)
	}
	return p, err
}

// readChild reads the page below element i of a branch. Both must have the same first key, as
// bbolt writes them; otherwise the branch refers to a wrong page.
func (r *Reader) readChild(p *Page, i int) (*Page, error) {
	c, err := r.Page(p.Element(i).Child)
	if err != nil {
		return nil, err
	}
	if c.Count == 0 {
		return nil, fmt.Errorf("page %d is empty", c.ID)
	}
	want, err := p.Key(i)
	if err != nil {
		return nil, err
	}
	got, err := c.Key(0)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(got, want) {
		return nil, fmt.Errorf("page %d does not begin with the key that page %d has for it", c.ID, p.ID)
	}
	return c, nil
}

// Find returns the entry of a key. ok is false only if the pages show that the key is not
// there; if damage could hide it, Find returns an error.
func (r *Reader) Find(t Tree, key []byte) (e Entry, ok bool, err error) {
	p, err := r.findLeaf(t, key, nil)
	if err != nil {
		return Entry{}, false, err
	}
	i, ok, err := p.search(key)
	if err == nil && !ok {
		err = r.checkAbsent(t, p, i, key)
	}
	if err != nil || !ok {
		return Entry{}, false, err
	}
	return p.Entry(i, key), true, nil
}

// Floor returns the entry with the greatest key of the leaf to which key belongs that is
// not above key.
func (r *Reader) Floor(t Tree, key []byte) (e Entry, ok bool, err error) {
	p, err := r.findLeaf(t, key, nil)
	if err != nil {
		return Entry{}, false, err
	}
	i, exact, err := p.search(key)
	if !exact {
		i--
	}
	if err != nil || i < 0 {
		return Entry{}, false, err
	}
	found, err := p.Key(i)
	return p.Entry(i, found), err == nil, err
}

// checkAbsent checks that a key that would be element i of a leaf is really absent: the
// leaf must be sound, and the key must lie before the next one in the tree.
func (r *Reader) checkAbsent(t Tree, p *Page, i int, key []byte) error {
	if err := r.check(p); err != nil {
		return err
	}
	if i < p.Count || p.ID == t.Root {
		return nil
	}
	return r.checkNext(t, key)
}

// checkNext reads the first entry from key on, where all keys of the leaf of key are
// below it. A branch with a wrong key for that leaf is found by this: if the key is too
// large, the search came here in error and the next leaf has smaller keys; if it is too
// small, the leaf does not begin with it.
func (r *Reader) checkNext(t Tree, key []byte) error {
	for _, err := range r.Scan(t, key, false) {
		return err
	}
	return nil
}

// check is [Page.Check], once for a page in the cache.
func (r *Reader) check(p *Page) error {
	if p.checked.Load() {
		return nil
	}
	err := p.Check(r.Meta.HighWater)
	p.checked.Store(err == nil)
	return err
}

// CheckPath checks every page that bbolt reads or rewrites when it changes a key: the pages
// from the root to the leaf, and their siblings, with which bbolt may merge them.
func (r *Reader) CheckPath(t Tree, key []byte) error {
	top, err := r.Top(t)
	if err == nil {
		err = r.check(top)
	}
	if err != nil {
		return err
	}
	_, err = r.findLeaf(t, key, func(p *Page, i int) error {
		for k := max(i-1, 0); k <= min(i+1, p.Count-1); k++ {
			child, err := r.readChild(p, k)
			if err == nil {
				err = r.check(child)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
