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
	pages      *page.Reader
	fileNumber uint64          // of the file; see objects.Locator
	mem        *memtable.Table // the changes of the journal; nil: none
	mark       memtable.Mark   // how much of it is visible
	packs      map[uint32]*pack
	bodies     *bodyCache
	index      *index.Runs // nil: not read yet
	chunk      cachedChunk // of the index
	advice     *headAdvice // of a walk over many packs; nil: of few, or of another read
	arena      *arena      // for what is read of packs; nil: it is kept
}

func newSnapshot(f io.ReaderAt, m page.Meta) *snapshot {
	return &snapshot{pages: page.NewReader(f, m), bodies: &bodyCache{}}
}

// withArena returns the same snapshot with an arena as the memory for what is read.
func (l *snapshot) withArena(a *arena) *snapshot {
	m := newSnapshot(l.pages.File, l.pages.Meta)
	m.fileNumber, m.mem, m.mark, m.bodies, m.advice = l.fileNumber, l.mem, l.mark, l.bodies, l.advice
	m.arena, m.pages.Arena = a, a.pageArena()
	return m
}

// bucket returns the tree of a bucket. A store without a meta bucket is no store, one
// without any other bucket is damaged.
func (l *snapshot) bucket(n int) (page.Tree, error) {
	t, err := l.pages.Bucket(buckets[n])
	if errors.Is(err, page.ErrNoBucket) && n != metaBucket {
		return t, fmt.Errorf("bucket %q is not there", buckets[n])
	}
	return t, err
}

// findInFile returns the entry of a key of the file, without the journal.
func (l *snapshot) findInFile(bucket int, key []byte) (e page.Entry, ok bool, err error) {
	t, err := l.bucket(bucket)
	if err != nil {
		return e, false, err
	}
	return l.pages.Find(t, key)
}

// get returns the value of a key of a bucket as it is stored; nil when there is none.
func (l *snapshot) get(bucket int, key []byte) (raw []byte, err error) {
	if value, ok := l.journalValue(bucket, key); ok {
		return value, nil
	}
	e, ok, err := l.findInFile(bucket, key)
	if err != nil || !ok {
		return nil, err
	}
	return e.Value()
}

// journalValue returns the value that the journal has for a key; nil: it deletes the key.
func (l *snapshot) journalValue(bucket int, key []byte) (value []byte, ok bool) {
	if l.mem == nil {
		return nil, false
	}
	return l.mem.Get(bucket, key, l.mark)
}

// ascend yields the entries of a bucket from key on, in ascending order.
func (l *snapshot) ascend(bucket int, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, false, l.journaled(bucket))
}

// descend yields the entries of a bucket below key, in descending order.
func (l *snapshot) descend(bucket int, key []byte) iter.Seq2[page.Entry, error] {
	return l.merged(bucket, key, true, l.journaled(bucket))
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

// decoded yields what decode makes of entries. An error is the last element.
func decoded[T any](entries iter.Seq2[page.Entry, error], decode func(key, value []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range entries {
			var v T
			if err == nil {
				var value []byte
				if value, err = e.Value(); err == nil {
					v, err = decode(e.Key, value)
				}
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// merged yields what the file has of a bucket from a key on, or if descending is set, below the key,
// together with entries of the journal. For a key that both have the journal counts.
func (l *snapshot) merged(bucket int, from []byte, descending bool, journaled []memtable.Entry) iter.Seq2[page.Entry, error] {
	file, journaled := l.scanFile(bucket, from, descending), cutAt(journaled, from, descending)
	if len(journaled) == 0 {
		return file
	}
	return func(yield func(page.Entry, error) bool) {
		rest := journaled
		next := func() bool { // the journal's next, unless it is deleted
			var e memtable.Entry
			e, rest = takeNext(rest, descending)
			return e.Value == nil || yield(page.MemoryEntry(e.Key, e.Value), nil)
		}
		for e, err := range file {
			replaced := false
			for err == nil && len(rest) > 0 && !replaced {
				first, _ := takeNext(rest, descending)
				c := bytes.Compare(first.Key, e.Key)
				if replaced = c == 0; !replaced && (c > 0) != descending {
					break
				}
				if !next() {
					return
				}
			}
			if !replaced && !yield(e, err) || err != nil {
				return
			}
		}
		for len(rest) > 0 && next() {
		}
	}
}

// cutAt returns the ascending entries from a key on, or if below is set, below the key.
func cutAt(list []memtable.Entry, key []byte, below bool) []memtable.Entry {
	at, _ := slices.BinarySearchFunc(list, key, func(e memtable.Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	if below {
		return list[:at]
	}
	return list[at:]
}

// takeNext returns the first of ascending entries, or the last one when descending, and the others.
func takeNext(list []memtable.Entry, descending bool) (next memtable.Entry, others []memtable.Entry) {
	if n := len(list) - 1; descending {
		return list[n], list[:n]
	}
	return list[0], list[1:]
}

// journaled returns the entries of a bucket that the journal has, in ascending order. The list is shared:
// the caller must not change it.
func (l *snapshot) journaled(bucket int) []memtable.Entry {
	if l.mem == nil {
		return nil
	}
	return l.mem.Sorted(bucket, l.mark)
}
