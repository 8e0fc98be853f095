package objects

import "sync"

// Cache is what rooms above a store have worked out from objects, which never
// change, so that it is worked out once. It lives as long as the store, or until
// objects are erased.
type Cache struct {
	mu    sync.Mutex
	known map[any]any
}

// Get returns what is known under a key, made by f when it is asked for first. A key
// is a value of a type of its own of the room that asks.
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

// forget makes everything be worked out anew.
func (m *Cache) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

// Cacher is a store with a memo, as every store from [Open] is.
type Cacher interface {
	// Cache is always the same.
	Cache() *Cache
}
