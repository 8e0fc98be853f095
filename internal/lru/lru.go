// Package lru has a cache that is bounded by the sum of the sizes of its values.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps the values that were used last. Any number of goroutines may use it.
type Cache[K comparable, V any] struct {
	maxSize int

	mu       sync.Mutex
	size     int        // sum of the sizes of the values
	used     *list.List // of *entry[K, V], the last used first
	elements map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache for values whose sizes have a sum of at most maxSize. The value that was put last is
// kept in any case.
func New[K comparable, V any](maxSize int) *Cache[K, V] {
	return &Cache[K, V]{maxSize: maxSize, used: list.New(), elements: map[K]*list.Element{}}
}

// Get returns the value of a key; the zero value if there is none.
func (c *Cache[K, V]) Get(key K) (value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.elements[key]; e != nil {
		c.used.MoveToFront(e)
		value = e.Value.(*entry[K, V]).value
	}
	return value
}

// Put sets the value of a key, and removes the values that have not been used for longest until the sizes fit.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.elements[key])
	c.elements[key] = c.used.PushFront(&entry[K, V]{key, value, size})
	c.size += size
	for c.size > c.maxSize && c.used.Len() > 1 {
		c.remove(c.used.Back())
	}
}

// Remove removes the value of a key, if there is one.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.elements[key])
}

// remove removes an element, unless it is nil.
func (c *Cache[K, V]) remove(element *list.Element) {
	if element == nil {
		return
	}
	e := c.used.Remove(element).(*entry[K, V])
	delete(c.elements, e.key)
	c.size -= e.size
}
