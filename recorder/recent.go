package recorder

import (
	"bytes"
	"sync"

	"github.com/tract-vcs/tract/internal/secrets"
)

// recent has something of the last request of each lane: a client repeats most of it in its next
// request. It forgets everything when it has seen as many bytes of bodies as it may hold.
type recent[T any] struct {
	mu   sync.Mutex
	of   map[string]T
	size int
}

// mostRecent is the most bytes of bodies of a recent.
const mostRecent = 16 << 20

func (r *recent[T]) get(lane string) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[lane]
}

func (r *recent[T]) put(lane string, v T, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size += size; r.of == nil || r.size > mostRecent {
		r.of, r.size = map[string]T{}, size
	}
	r.of[lane] = v
}

// maskOverlap is how much of what a body has in common with an earlier one is searched again: a
// secret may end in what is new.
const maskOverlap = 64 << 10

// maskBody returns a body with masks in the place of secrets. last has bodies without any, by lane.
func maskBody(body []byte, lane string, last *recent[[]byte]) []byte {
	before := last.get(lane)
	const step = 4 << 10
	same := 0
	for same+step <= min(len(before), len(body)) && bytes.Equal(before[same:same+step], body[same:same+step]) {
		same += step
	}
	searched := string(body[max(0, same-maskOverlap):])
	masked := secrets.Mask(searched)
	if masked == searched {
		last.put(lane, body, len(body))
		return body
	}
	last.put(lane, nil, 0)
	return append(bytes.Clone(body[:len(body)-len(searched)]), masked...)
}
