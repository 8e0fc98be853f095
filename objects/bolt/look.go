package bolt

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// look is the store as it is at one moment: the pages of the file after one transaction,
// under what the journal says and what will be put next. It is for one goroutine.
type look struct {
	pages    *page.Reader
	number   uint64    // of the file; see Spot
	over     *overlay  // what the journal says; nil: nothing
	seen     mark      // of it
	staged   []*staged // what will be put next
	packs    map[uint32]*pack
	lastBody begunBody
	bodies   *opened
	index    *runs     // nil: not read yet
	scan     *scanning // of many packs; nil: it is of few
	arena    *arena    // for what is read of packs; nil: it is kept
}

func newLook(f io.ReaderAt, m page.Meta) *look {
	return &look{pages: page.NewReader(f, m), bodies: &opened{}}
}

// useArena makes an arena the memory for what is read from now on.
func (l *look) useArena(a *arena) { l.arena, l.pages.Arena = a, a.pages() }

// bucket returns the tree of a bucket. A store without a meta bucket is no store, one
// without any other bucket is damaged.
func (l *look) bucket(name string) (page.Tree, error) {
	t, err := l.pages.Bucket(name)
	if errors.Is(err, page.ErrNoBucket) && name != metaBucket {
		return t, fmt.Errorf("bucket %q is not there", name)
	}
	return t, err
}

// find returns the entry of a key of the file.
func (l *look) find(bucket string, key []byte) (e page.Entry, ok bool, err error) {
	t, err := l.bucket(bucket)
	if err != nil {
		return e, false, err
	}
	return l.pages.Find(t, key)
}

// get returns the value of a key of a bucket; nil when there is none.
func (l *look) get(bucket string, key []byte) ([]byte, error) {
	if l.over != nil {
		if value, edited := l.over.get(bucketNumber(bucket), key, &l.seen); edited {
			return value, nil
		}
	}
	e, ok, err := l.find(bucket, key)
	if err != nil || !ok {
		return nil, err
	}
	return e.Value()
}

// ascend yields the entries of a bucket from key on, in ascending order.
func (l *look) ascend(bucket string, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, false)
}

// descend yields the entries of a bucket below key, in descending order.
func (l *look) descend(bucket string, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, true)
}

// scanFile yields what the file has of a bucket, without the journal.
func (l *look) scanFile(bucket string, from []byte, descending bool) iter.Seq2[page.Entry, error] {
	return func(yield func(page.Entry, error) bool) {
		t, err := l.bucket(bucket)
		if err != nil {
			yield(page.Entry{}, err)
			return
		}
		l.pages.Scan(t, from, descending)(yield)
	}
}
