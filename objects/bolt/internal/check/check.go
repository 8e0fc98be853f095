// Package check visits every page of a bbolt file, damaged or not. A [page.Reader] stops at a
// damaged page; a [Walker] reports it and goes on with the next one.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// Walker visits the B+trees of a file in one state, which Reset sets.
type Walker struct {
	File io.ReaderAt
	Meta page.Meta

	usage map[uint64]*[blockPages]usage // of the pages that are not unknown, by block
}

// blockPages is how many pages one block of usages is for. There are blocks only where something
// was visited, so that a walk over a small part of a file costs what the part does.
const blockPages = 1 << 12

// usage says what a page is used for, as far as it is known.
type usage uint8

const (
	unknown usage = iota
	free          // according to the free list
	used          // by a tree that was walked, or by the free list
)

// Reset makes the walker visit the file in the state of m. No page is visited yet.
func (w *Walker) Reset(m page.Meta) {
	w.Meta, w.usage = m, map[uint64]*[blockPages]usage{}
}

// usageOf returns the usage of a page.
func (w *Walker) usageOf(id uint64) *usage {
	b := w.usage[id/blockPages]
	if b == nil {
		b = new([blockPages]usage)
		w.usage[id/blockPages] = b
	}
	return &b[id%blockPages]
}

// ReadFreelist notes which pages are free. A tree that uses one of them is damaged.
func (w *Walker) ReadFreelist() error {
	ids, list, err := page.ReadFreelist(w.File, w.Meta)
	if err != nil {
		return err
	}
	for id := list.ID; id <= list.Last; id++ {
		*w.usageOf(id) = used
	}
	for _, id := range ids {
		*w.usageOf(id) = free
	}
	return nil
}

// Lost counts the pages that are neither free nor used.
func (w *Walker) Lost() int {
	n := int(w.Meta.HighWater) - 2
	for _, b := range w.usage {
		for _, u := range b {
			if u != unknown {
				n--
			}
		}
	}
	return n
}

// Walk calls visit with the entries of a tree from a key on, in order, and damage with what
// is wrong in a page, or in an inline page, which has the id 0. An error that either returns
// ends the walk. A page is visited once.
func (w *Walker) Walk(t page.Tree, from []byte, damage func(id uint64, err error) error, visit func(e page.Entry) error) error {
	k := walk{w, from, damage, visit}
	if t.Inline == nil {
		return k.page(t.Root, nil, nil, 0)
	}
	if err := t.Inline.Check(w.Meta.HighWater); err != nil {
		if err := damage(0, err); err != nil {
			return err
		}
	}
	return k.leaf(t.Inline)
}

// walk is the state of one Walk.
type walk struct {
	*Walker

	from   []byte
	damage func(id uint64, err error) error
	visit  func(e page.Entry) error
}

// page visits a page and those below it. Its parent says that its first key is first, and
// that all of its keys are below end; nil: it does not say so.
func (k *walk) page(id uint64, first, end []byte, depth int) error {
	if depth == page.MaxDepth {
		return k.damage(id, errors.New("the tree has a cycle"))
	}
	p, err := page.Read(k.File, k.Meta, id)
	if err != nil {
		return k.damage(id, err)
	}
	again := *k.usageOf(id) == used
	for _, err := range [2]error{k.use(p), k.checkKeys(p, first, end)} {
		if err == nil {
			continue
		}
		if err := k.damage(id, err); err != nil {
			return err
		}
	}
	switch {
	case again:
		return nil
	case p.Leaf:
		return k.leaf(p)
	}
	for i := range p.Count {
		key, err := p.Key(i)
		if err != nil {
			continue // checkKeys has reported it
		}
		next := end
		if i+1 < p.Count {
			if next, err = p.Key(i + 1); err != nil {
				next = end
			} else if bytes.Compare(next, k.from) <= 0 {
				continue
			}
		}
		if err := k.page(p.Element(i).Child, key, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// use notes that a page is used, with its overflow pages, and returns an error if they were
// used or free before.
func (w *Walker) use(p *page.Page) (err error) {
	for id := p.ID; id <= p.Last; id++ {
		u := w.usageOf(id)
		switch {
		case err != nil:
		case *u == used:
			err = fmt.Errorf("page %d is in use elsewhere", id)
		case *u == free:
			err = fmt.Errorf("page %d is free by the free list, so that writing would destroy it", id)
		}
		*u = used
	}
	return err
}

// checkKeys checks the elements of a page, and compares its keys with what its parent says.
func (w *Walker) checkKeys(p *page.Page, first, end []byte) error {
	if err := p.Check(w.Meta.HighWater); err != nil {
		return err
	}
	if p.Count == 0 && p.ID != w.Meta.Root {
		return errors.New("it is empty")
	}
	if first == nil {
		return nil
	}
	key, err := p.Key(0)
	if err == nil && !bytes.Equal(key, first) {
		err = errors.New("it does not begin with the key that the page above has for it")
	}
	if err != nil {
		return err
	}
	key, err = p.Key(p.Count - 1)
	if err == nil && end != nil && bytes.Compare(key, end) >= 0 {
		err = errors.New("its last key is not below that of the next page")
	}
	return err
}

func (k *walk) leaf(p *page.Page) error {
	for i := range p.Count {
		key, err := p.Key(i)
		if err != nil || bytes.Compare(key, k.from) < 0 {
			continue // checkKeys has reported the error
		}
		if err := k.visit(p.Entry(i, key)); err != nil {
			return err
		}
	}
	return nil
}

// BetterMeta returns the newer of the meta pages that can be read, for a file of a size whose
// meta pages [page.ReadMeta] refuses. Pages beyond the end of the file do not exist.
func BetterMeta(f io.ReaderAt, size int64) (m page.Meta, ok bool) {
	first, err := page.ReadMetaAt(f, 0)
	if err == nil {
		m, ok = first, true
	}
	for pageSize := int64(page.MinSize); pageSize <= 64<<10; pageSize *= 2 {
		second, err := page.ReadMetaAt(f, pageSize)
		if err == nil && int64(second.PageSize) == pageSize && (!ok || second.Tx > m.Tx) {
			m, ok = second, true
		}
	}
	if ok {
		m.HighWater = min(m.HighWater, uint64(size)/uint64(m.PageSize))
	}
	return m, ok && m.HighWater > 2
}
