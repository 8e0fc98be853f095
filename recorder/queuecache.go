package recorder

import (
	"bytes"
	"sync"

	"github.com/tract-vcs/tract/internal/secrets"
)

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

// maskOverlap is the number of bytes before the first difference from the earlier body that are
// searched again, because a secret may begin there and end in the new part.
const maskOverlap = 64 << 10

// cacheKey returns the key of an exchange in a queueCache: its queue and the beginning of its body, by which
// the conversations of a queue, such as those of sub-agents, differ.
func (x *exchange) cacheKey(body []byte) string {
	return x.queueKey() + "\x00" + string(body[:min(len(body), 1<<10)])
}

// maskRequest returns the request body of an exchange in which secrets are masked, unless the Repo masks none.
// If the body has none, it is searched once, for the spool and for the store. What it shares with the
// last body with the same cacheKey, in which no secret was found, is not searched again.
func (x *exchange) maskRequest(body []byte) []byte {
	if x.c.o.Unmasked || x.clean.Load() {
		return body
	}
	original, key := body, x.cacheKey(body)
	body = x.redactBytes(body)
	before := x.c.bodies.get(key)
	const step = 4 << 10
	same := 0
	for same+step <= min(len(before), len(body)) && bytes.Equal(before[same:same+step], body[same:same+step]) {
		same += step
	}
	searched := string(body[max(0, same-maskOverlap):])
	masked := secrets.Mask(searched)
	if masked == searched {
		x.c.bodies.put(key, body, len(body))
		x.clean.Store(bytes.Equal(body, original))
		return body
	}
	x.c.bodies.put(key, nil, 0)
	return append(bytes.Clone(body[:len(body)-len(searched)]), masked...)
}
