package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// meanings says what the loss of a page of a bucket means to a user.
var meanings = map[int]string{
	metaBucket:    "the store is not opened; tract recover saves what is there",
	objectsBucket: "large objects on it are lost",
	refsBucket:    "branches and tags on it are lost; the ref log knows most of them, and tract recover asks it",
	recentBucket:  "nothing is lost: it is the order of refs by time; tract recover makes it anew",
	logBucket:     "moves of refs on it are lost, no commits",
	movesBucket:   "nothing is lost: it is the ref log by name; tract recover makes it anew",
	headsBucket:   "the commits of the packs on it are lost",
	bodiesBucket:  "the words of the packs on it are lost",
	indexBucket:   "nothing is lost: it says where objects lie; tract recover makes it anew",
}

// trees walks the tree of buckets and then each bucket.
func (a *checker) trees() error {
	defer a.abandon()
	found := map[string]page.Tree{}
	err := a.walk(node{id: a.meta.Root, bucket: metaBucket}, func(p *page.Page, i int, key []byte) error {
		t, err := a.subBucket(p, i)
		switch {
		case isStop(err):
			return err
		case err == nil && !isBucket(string(key)):
			err = errors.New("no bucket of a store")
		}
		if err != nil {
			return a.reportDamage(fmt.Sprintf("bucket %q", key), err, meanings[metaBucket])
		}
		found[string(key)] = t
		return nil
	})
	if err != nil {
		return err
	}
	for _, number := range []int{metaBucket, bodiesBucket, headsBucket, indexBucket, objectsBucket, refsBucket, recentBucket, logBucket, movesBucket} {
		name := buckets[number]
		t, ok := found[name]
		if !ok {
			a.damaged[number] = true
			if err := a.reportDamage(fmt.Sprintf("bucket %q", name), errors.New("it is not there"), meanings[number]); err != nil {
				return err
			}
			continue
		}
		row := func(p *page.Page, i int, key []byte) error { return a.row(number, p, i, key) }
		if t.Inline != nil {
			err = a.leaf(t.Inline, node{bucket: number}, row)
		} else {
			err = a.walk(node{id: t.Root, bucket: number}, row)
		}
		if err == nil {
			err = a.finishChecks()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isBucket(name string) bool {
	for _, b := range buckets {
		if b == name {
			return true
		}
	}
	return false
}

// subBucket reads where the tree of a bucket begins.
func (a *checker) subBucket(p *page.Page, i int) (page.Tree, error) {
	e := p.Entry(i, nil)
	b, err := e.Raw(nil)
	switch {
	case err != nil:
		return page.Tree{}, err
	case e.Flags != page.BucketFlag || len(b) < page.HeaderSize:
		return page.Tree{}, errors.New("its record is no bucket")
	}
	return page.ParseTree(b)
}

// node is a page to visit, and what its parent says about it.
type node struct {
	id     uint64
	bucket int
	depth  int
	first  []byte // its first key
	below  []byte // its keys are less; nil: no limit
}

func (n node) where() string { return fmt.Sprintf("page %d (%s)", n.id, buckets[n.bucket]) }

// reportPage reports damage in a tree.
func (a *checker) reportPage(n node, err error) error {
	if isStop(err) {
		return err
	}
	a.damaged[n.bucket] = true
	return a.report(objects.Damage{Where: n.where(), What: err.Error(), Means: meanings[n.bucket]})
}

// walk visits a page and its descendants. A page may be reached once.
func (a *checker) walk(n node, row func(p *page.Page, i int, key []byte) error) error {
	if n.depth == page.MaxDepth {
		return a.reportPage(n, errors.New("the tree goes in a circle"))
	}
	p, err := page.Read(a.files, a.meta, n.id)
	if err != nil {
		return a.reportPage(n, err)
	}
	for id := p.ID; id <= p.Last; id++ {
		if a.pages[id] != pageUnknown {
			was := "in use elsewhere"
			if a.pages[id] == pageFree {
				was = "free by the free list, so that writing would destroy it"
			}
			if err := a.reportPage(n, fmt.Errorf("page %d is %s", id, was)); err != nil {
				return err
			}
			break
		}
	}
	if a.pages[p.ID] == pageUsed {
		return nil
	}
	for id := p.ID; id <= p.Last; id++ {
		a.pages[id] = pageUsed
	}
	if err := a.edge(n, p); err != nil {
		return err
	}
	if p.Leaf {
		return a.leaf(p, n, row)
	}
	return a.branch(p, n, row)
}

// edge compares the keys of a page with what its parent says.
func (a *checker) edge(n node, p *page.Page) error {
	if err := p.Check(a.meta.HighWater); err != nil {
		return a.reportPage(n, err)
	}
	if p.Count == 0 && p.ID != a.meta.Root {
		return a.reportPage(n, errors.New("it is empty"))
	}
	if n.first == nil {
		return nil
	}
	first, err := p.Key(0)
	if err == nil && !bytes.Equal(first, n.first) {
		err = errors.New("it does not begin as the page above says")
	}
	if err != nil {
		return a.reportPage(n, err)
	}
	last, err := p.Key(p.Count - 1)
	if err == nil && n.below != nil && bytes.Compare(last, n.below) >= 0 {
		err = errors.New("it ends beyond the page after it")
	}
	if err != nil {
		return a.reportPage(n, err)
	}
	return nil
}

func (a *checker) branch(p *page.Page, n node, row func(p *page.Page, i int, key []byte) error) error {
	for i := range p.Count {
		key, err := p.Key(i)
		if err != nil {
			continue // reported by edge
		}
		child := node{id: p.Element(i).Child, bucket: n.bucket, depth: n.depth + 1, first: key, below: n.below}
		if i+1 < p.Count {
			if next, err := p.Key(i + 1); err == nil {
				child.below = next
			}
		}
		if err := a.walk(child, row); err != nil {
			return err
		}
	}
	return nil
}

func (a *checker) leaf(p *page.Page, n node, row func(p *page.Page, i int, key []byte) error) error {
	if p.Offset == 0 { // inline: not checked by edge
		if err := p.Check(a.meta.HighWater); err != nil {
			if err := a.reportPage(n, err); err != nil {
				return err
			}
		}
	}
	for i := range p.Count {
		key, err := p.Key(i)
		if err != nil {
			continue // reported by edge
		}
		if err := row(p, i, key); err != nil {
			return err
		}
	}
	return nil
}
