package objects

import "sync"

// Cache holds values that the packages above a store have computed from objects, which never
// change. It lasts until the store is closed or objects are purged. Several goroutines may use
// it at once.
type Cache struct {
	mu    sync.Mutex
	known map[any]any
}

// Get returns the value of a key; the first call makes the value with f. A key has a type that
// only the calling package uses.
func (m *Cache) Get(key any, f func() any) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.known[key]; ok {
		return v
	}
	if m.known == nil {
		m.known = map[any]any{}
	}
	v := f()
	m.known[key] = v
	return v
}

// clear empties the cache.
func (m *Cache) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

// Cacher is a store with a cache, as every store from [Open] is.
type Cacher interface {
	// Cache returns the cache of the store, always the same one.
	Cache() *Cache
}
