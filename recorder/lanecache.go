package recorder

import (
	"bytes"
	"sync"

	"github.com/tract-vcs/tract/internal/secrets"
)

// laneCache keeps one value for each lane, made from the lane's last request. The next request
// reuses it, because a client repeats most of a request in its next one. When the bodies of these
// requests exceed maxCachedBodies, the cache drops the values of other lanes.
type laneCache[T any] struct {
	mu     sync.Mutex
	values map[string]cachedValue[T]
	size   int // sum of the sizes of the values
}

type cachedValue[T any] struct {
	value T
	size  int
}

// maxCachedBodies is the largest sum of body sizes, in bytes, in a laneCache.
const maxCachedBodies = 16 << 20

// laneOverhead is about how many bytes a lane takes besides its body.
const laneOverhead = 256

// get returns the value of a lane, or the zero value.
func (r *laneCache[T]) get(lane string) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[lane].value
}

// put stores the value of a lane, made from a request with a body of bodySize bytes.
func (r *laneCache[T]) put(lane string, v T, bodySize int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[string]cachedValue[T]{}
	}
	r.size += bodySize + laneOverhead - r.values[lane].size
	r.values[lane] = cachedValue[T]{v, bodySize + laneOverhead}
	for other, dropped := range r.values {
		if r.size <= maxCachedBodies {
			break
		}
		if other != lane {
			r.size -= dropped.size
			delete(r.values, other)
		}
	}
}

// maskOverlap is the number of bytes before the first difference from the earlier body that are
// searched again, because a secret may begin there and end in the new part.
const maskOverlap = 64 << 10

// maskBody returns a body in which secrets are masked. lastBodies has the last body of each lane
// if it had no secrets; the part that the body shares with it is not searched again.
func maskBody(body []byte, lane string, lastBodies *laneCache[[]byte]) []byte {
	before := lastBodies.get(lane)
	const step = 4 << 10
	same := 0
	for same+step <= min(len(before), len(body)) && bytes.Equal(before[same:same+step], body[same:same+step]) {
		same += step
	}
	searched := string(body[max(0, same-maskOverlap):])
	masked := secrets.Mask(searched)
	if masked == searched {
		lastBodies.put(lane, body, len(body))
		return body
	}
	lastBodies.put(lane, nil, 0)
	return append(bytes.Clone(body[:len(body)-len(searched)]), masked...)
}
