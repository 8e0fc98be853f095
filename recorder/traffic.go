package recorder

import (
	"sync/atomic"
	"time"
)

// traffic holds the time at which bytes were last forwarded. Recording work waits for a moment
// without traffic, because a client must not wait for a processor that the recorder uses.
type traffic struct{ last atomic.Int64 } // in nanoseconds of Unix time; 0: none yet

// quietTime is the time without traffic after which recording work begins.
const quietTime = 2 * time.Millisecond

// note is called when bytes are forwarded.
func (t *traffic) note() { t.last.Store(time.Now().UnixNano()) }

// awaitQuiet waits until no bytes are forwarded, but not longer than until the deadline.
func (t *traffic) awaitQuiet(deadline time.Time) {
	for now := time.Now(); now.Before(deadline) && now.Sub(time.Unix(0, t.last.Load())) < quietTime; now = time.Now() {
		time.Sleep(quietTime / 2)
	}
}
