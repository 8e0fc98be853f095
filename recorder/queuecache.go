package recorder

import "sync"

// queueCache keeps one value for each queue, made from the queue's last request. The next request
// reuses it, because a client repeats most of a request in its next one. When the bodies of these
// requests exceed maxCachedBodies, the cache drops the values of other queues.
type queueCache[T any] struct {
	mu     sync.Mutex
	values map[string]cachedValue[T]
	size   int // sum of the sizes of the values
}

type cachedValue[T any] struct {
	value T
	size  int
}

// maxCachedBodies is the largest sum of body sizes, in bytes, in a queueCache.
const maxCachedBodies = 16 << 20

// queueOverhead is about how many bytes a queue takes besides its body.
const queueOverhead = 256

// get returns the value of a queue, or the zero value.
func (r *queueCache[T]) get(queue string) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[queue].value
}

// put stores the value of a queue, made from a request with a body of bodySize bytes.
func (r *queueCache[T]) put(queue string, v T, bodySize int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[string]cachedValue[T]{}
	}
	r.size += bodySize + queueOverhead - r.values[queue].size
	r.values[queue] = cachedValue[T]{v, bodySize + queueOverhead}
	for other, dropped := range r.values {
		if r.size <= maxCachedBodies {
			break
		}
		if other != queue {
			r.size -= dropped.size
			delete(r.values, other)
		}
	}
}
