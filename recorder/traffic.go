package recorder

import (
	"sync/atomic"
	"time"
)

// traffic knows whether bytes are being forwarded. Recording work waits for a moment without
// traffic, because a client must not wait for a processor that the recorder uses.
type traffic struct {
	uploads       atomic.Int64 // requests whose bodies are being sent
	waiters       atomic.Int64 // callers that wait for the recording work: it does not wait then
	lastForwarded atomic.Int64 // when bytes were last forwarded, in nanoseconds of Unix time; 0: never
}

// quietTime is the time without traffic after which recording work begins.
const quietTime = 10 * time.Millisecond

// noteForwardedBytes is called when bytes are forwarded: it keeps the time.
func (t *traffic) noteForwardedBytes() { t.lastForwarded.Store(time.Now().UnixNano()) }

// isQuiet reports whether nothing is forwarded now, or somebody waits for the recording work.
func (t *traffic) isQuiet(now time.Time) bool {
	return t.waiters.Load() > 0 || t.uploads.Load() == 0 && now.Sub(time.Unix(0, t.lastForwarded.Load())) >= quietTime
}

// awaitQuiet waits until isQuiet returns true, but not longer than until the deadline.
func (t *traffic) awaitQuiet(deadline time.Time) {
	for now := time.Now(); now.Before(deadline) && !t.isQuiet(now); now = time.Now() {
		time.Sleep(min(quietTime/5, deadline.Sub(now)))
	}
}
