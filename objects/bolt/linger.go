package bolt

import "time"

// linger is how long after it was opened a store that only reads keeps a handle at
// which nobody looks. A command that shows something looks a dozen times at once,
// and to open and lock the files anew each time takes longer than the looks. Whatever
// the command does next, a timer lets go.
const linger = 2 * time.Millisecond

// courtesy is how often whoever looks again and again asks whether another process
// waits, which is not kept waiting any longer then.
const courtesy = 200 * time.Microsecond

// idles keeps a handle for the next look, or tells that it is not to be kept. mu is
// held, and nobody looks at the handle.
func (s *store) idles(h *handle) bool {
	now := time.Now()
	left := linger - now.Sub(h.opened)
	if !s.readOnly || s.closed || left <= 0 {
		return false
	}
	if h.polite.IsZero() {
		h.polite = h.opened
	}
	if now.Sub(h.polite) > courtesy {
		if h.polite = now; h.side != nil && h.side.wanted() {
			return false
		}
	}
	h.idle = true
	if !h.timed {
		h.timed = true
		time.AfterFunc(left, func() { s.letGo(h) })
	}
	return true
}

// letGo closes a handle at which nobody looks. One that somebody looks at then is
// closed by who looks last.
func (s *store) letGo(h *handle) {
	s.mu.Lock()
	idle := h.idle
	if h.idle = false; idle && s.shared == h {
		s.shared = nil
	}
	s.mu.Unlock()
	if idle {
		s.shut(h)
	}
}
