// Package memtable holds the changes of a journal in memory, above the database file.
//
// A [Table] only grows, and every change has a number. A reader remembers how many there
// were ([Mark]) and keeps seeing the table as it was then, while writers add to it.
package memtable

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// Mark is a moment of a table: the number of changes that it had.
type Mark int

// Newest is the mark of a reader that sees every change, also those that are added later.
const Newest Mark = math.MaxInt

// Entry is the value that a key was set to; nil: it was deleted.
type Entry struct {
	Key, Value []byte
}

// Table is safe for concurrent use. Keys and values are those of the journal: shared, and
// never changed.
type Table struct {
	mu      sync.RWMutex
	count   Mark
	buckets []bucket
	sorted  listing
}

// bucket has the changes of one bucket in the order of their arrival.
type bucket struct {
	entries   []Entry
	versions  []version        // of each entry
	latest    map[uint64]int32 // the newest entry of the keys with a hash
	ascending bool             // each key is above the one before it
}

// version says when an entry came, and which came before it under its hash: of the same key,
// or of another one by chance.
type version struct {
	at       Mark
	previous int32 // the entry before it whose key has the same hash; -1: none
}

// listing is the sorted list that was asked for last.
type listing struct {
	bucket, versions int
	entries          []Entry
}

var seed = maphash.MakeSeed()

// New returns a table without changes.
func New(buckets int) *Table { return (&Table{buckets: make([]bucket, buckets)}).NewSameSize() }

// NewSameSize returns a table without changes that has room for as many as t has.
func (t *Table) NewSameSize() *Table {
	t.mu.RLock()
	defer t.mu.RUnlock()
	next := &Table{buckets: make([]bucket, len(t.buckets))}
	for i := range t.buckets {
		b := &t.buckets[i]
		next.buckets[i] = bucket{make([]Entry, 0, len(b.entries)), make([]version, 0, len(b.entries)), make(map[uint64]int32, len(b.latest)), true}
	}
	return next
}

// Add adds changes. Their keys and values must not change any more.
func (t *Table) Add(list []journal.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range list {
		t.buckets[c.Bucket].add(Entry{Key: c.Key, Value: c.Value}, t.count)
		t.count++
	}
}

func (b *bucket) add(e Entry, at Mark) {
	n, hash := int32(len(b.entries)), maphash.Bytes(seed, e.Key)
	previous, ok := b.latest[hash]
	if !ok {
		previous = -1
	}
	b.ascending = b.ascending && (n == 0 || bytes.Compare(b.entries[n-1].Key, e.Key) < 0)
	b.latest[hash] = n
	b.entries, b.versions = append(b.entries, e), append(b.versions, version{at, previous})
}

// Mark returns the present moment.
func (t *Table) Mark() Mark {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count
}

// Get returns the value of a key at a moment. ok is false if no change concerns the key; a
// key that was deleted has the value nil.
func (t *Table) Get(bucket int, key []byte, m Mark) (value []byte, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	b := &t.buckets[bucket]
	i := b.newest(key, m)
	if i < 0 {
		return nil, false
	}
	return b.entries[i].Value, true
}

// newest returns the newest entry of a key at a moment; -1: there is none.
func (b *bucket) newest(key []byte, m Mark) int32 {
	i, ok := b.latest[maphash.Bytes(seed, key)]
	if !ok {
		return -1
	}
	for i >= 0 && (b.versions[i].at >= m || !bytes.Equal(b.entries[i].Key, key)) {
		i = b.versions[i].previous
	}
	return i
}

func (b *bucket) len(m Mark) int {
	n, _ := slices.BinarySearchFunc(b.versions, m, func(v version, m Mark) int { return cmp.Compare(v.at, m) })
	return n
}

// All returns the newest entry of every key of a bucket at a moment, in the order of their
// arrival. The list is shared: the caller must not change it.
func (t *Table) All(bucket int, m Mark) []Entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buckets[bucket].all(m)
}

func (b *bucket) all(m Mark) []Entry {
	n := b.len(m)
	if b.ascending { // each key once
		return b.entries[:n:n]
	}
	list := make([]Entry, 0, n)
	for i, e := range b.entries[:n] {
		if b.newest(e.Key, m) == int32(i) {
			list = append(list, e)
		}
	}
	return list
}

// SortedWithPrefix returns the newest entry of every key with a prefix, by key. It looks at each
// entry of the bucket, but sorts only those.
func (t *Table) SortedWithPrefix(bucket int, prefix []byte, m Mark) (list []Entry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	b := &t.buckets[bucket]
	for i, e := range b.entries[:b.len(m)] {
		if bytes.HasPrefix(e.Key, prefix) && b.newest(e.Key, m) == int32(i) {
			list = append(list, e)
		}
	}
	sortByKey(list)
	return list
}

func sortByKey(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
}

// Sorted returns the newest entry of every key of a bucket at a moment, by key. The list is
// shared: the caller must not change it.
func (t *Table) Sorted(bucket int, m Mark) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &t.buckets[bucket]
	n := b.len(m)
	if n == 0 {
		return nil
	}
	if s := &t.sorted; s.bucket == bucket && s.versions == n {
		return s.entries
	}
	list := b.all(m)
	if !b.ascending { // else the list is that of the bucket
		sortByKey(list)
	}
	t.sorted = listing{bucket, n, list}
	return list
}
