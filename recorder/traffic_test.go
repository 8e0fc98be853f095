package recorder

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRecordingWaitsForTraffic forwards bytes for a while: recording work begins when nothing was forwarded for a
// moment, or at its deadline. The clock is that of synctest.
func TestRecordingWaitsForTraffic(t *testing.T) {
	for name, c := range map[string]struct{ traffic, hold, earliest, latest time.Duration }{
		"none":         {0, time.Hour, 0, 0},
		"ends":         {100 * time.Millisecond, time.Hour, 100 * time.Millisecond, 100*time.Millisecond + 2*quietTime},
		"does not end": {time.Second, 50 * time.Millisecond, 50 * time.Millisecond, 50*time.Millisecond + quietTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var forwarded traffic
				begin := time.Now()
				var clients sync.WaitGroup
				defer clients.Wait()
				if c.traffic > 0 {
					forwarded.note()
					clients.Go(func() {
						for time.Since(begin) < c.traffic {
							time.Sleep(quietTime / 4)
							forwarded.note()
						}
					})
				}
				forwarded.awaitQuiet(begin.Add(c.hold))
				if waited := time.Since(begin); waited < c.earliest || waited > c.latest {
					t.Errorf("waited %v, want %v to %v", waited, c.earliest, c.latest)
				}
			})
		})
	}
}
