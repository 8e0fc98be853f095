package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// snapshot is the store as it is at one moment: the pages of the file after one transaction,
// under what the journal says. It is for one goroutine.
type snapshot struct {
	pages    *page.Reader
	number   uint64          // of the file; see Spot
	mem      *memtable.Table // the changes of the journal; nil: none
	mark     memtable.Mark   // how much of it is visible
	packs    map[uint32]*pack
	lastBody bodyEntry
	bodies   *bodyCache
	index    *index.Runs // nil: not read yet
	chunk    cachedChunk // of the index
	scan     *readAdvice // of many packs; nil: it is of few
	arena    *arena      // for what is read of packs; nil: it is kept
}

func newSnapshot(f io.ReaderAt, m page.Meta) *snapshot {
	return &snapshot{pages: page.NewReader(f, m), bodies: &bodyCache{}}
}

// useArena makes an arena the memory for what is read from now on.
func (l *snapshot) useArena(a *arena) { l.arena, l.pages.Arena = a, a.pages() }

// bucket returns the tree of a bucket. A store without a meta bucket is no store, one
// without any other bucket is damaged.
func (l *snapshot) bucket(n int) (page.Tree, error) {
	t, err := l.pages.Bucket(buckets[n])
	if errors.Is(err, page.ErrNoBucket) && n != metaBucket {
		return t, fmt.Errorf("bucket %q is not there", buckets[n])
	}
	return t, err
}

// find returns the entry of a key of the file.
func (l *snapshot) find(bucket int, key []byte) (e page.Entry, ok bool, err error) {
	t, err := l.bucket(bucket)
	if err != nil {
		return e, false, err
	}
	return l.pages.Find(t, key)
}

// get returns the value of a key of a bucket; nil when there is none.
func (l *snapshot) get(bucket int, key []byte) ([]byte, error) {
	if value, ok := l.inJournal(bucket, key); ok {
		return value, nil
	}
	e, ok, err := l.find(bucket, key)
	if err != nil || !ok {
		return nil, err
	}
	return e.Value()
}

// inJournal returns the value that the journal has for a key; nil: it deletes the key.
func (l *snapshot) inJournal(bucket int, key []byte) (value []byte, ok bool) {
	if l.mem == nil {
		return nil, false
	}
	return l.mem.Get(bucket, key, l.mark)
}

// ascend yields the entries of a bucket from key on, in ascending order.
func (l *snapshot) ascend(bucket int, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, false)
}

// descend yields the entries of a bucket below key, in descending order.
func (l *snapshot) descend(bucket int, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, true)
}

// scanFile yields what the file has of a bucket, without the journal.
func (l *snapshot) scanFile(bucket int, from []byte, descending bool) iter.Seq2[page.Entry, error] {
	return func(yield func(page.Entry, error) bool) {
		t, err := l.bucket(bucket)
		if err != nil {
			yield(page.Entry{}, err)
			return
		}
		l.pages.Scan(t, from, descending)(yield)
	}
}

// merged yields what the file and the journal have, in one order. For a key that both have
// the journal counts.
func (l *snapshot) merged(bucket int, from []byte, descending bool) iter.Seq2[page.Entry, error] {
	file := l.scanFile(bucket, from, descending)
	if l.mem == nil {
		return file
	}
	list := l.mem.Sorted(bucket, l.mark)
	at, _ := slices.BinarySearchFunc(list, from, func(e memtable.Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	if list = list[at:]; descending {
		list = slices.Clone(l.mem.Sorted(bucket, l.mark)[:at])
		slices.Reverse(list)
	}
	if len(list) == 0 {
		return file
	}
	return func(yield func(page.Entry, error) bool) {
		rest := list
		for e, err := range file {
			if err != nil {
				yield(e, err)
				return
			}
			n, replaced := upTo(rest, e.Key, descending)
			if !yieldSet(rest[:n], yield) || !replaced && !yield(e, nil) {
				return
			}
			rest = rest[n:]
		}
		yieldSet(rest, yield)
	}
}

// upTo counts the changes that a scan meets up to a key, and reports whether the last of
// them is of that key.
func upTo(list []memtable.Entry, key []byte, descending bool) (n int, same bool) {
	for n < len(list) {
		c := bytes.Compare(list[n].Key, key)
		if c == 0 {
			return n + 1, true
		}
		if (c > 0) != descending {
			break
		}
		n++
	}
	return n, false
}

// yieldSet yields the keys that changes set, without those that they delete. It reports
// whether more is wanted.
func yieldSet(list []memtable.Entry, yield func(page.Entry, error) bool) bool {
	for _, e := range list {
		if e.Value != nil && !yield(page.MemoryEntry(e.Key, e.Value), nil) {
			return false
		}
	}
	return true
}
