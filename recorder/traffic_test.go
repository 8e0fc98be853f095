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
	const begins, ends = 50 * time.Millisecond, 100 * time.Millisecond
	for name, c := range map[string]struct{ traffic, upload, hold, earliest, latest time.Duration }{
		"none":              {0, 0, time.Hour, 0, 0},
		"ends":              {ends, 0, time.Hour, ends + quietTime, ends + 2*quietTime},
		"does not end":      {time.Second, 0, begins, begins, begins},
		"an upload ends":    {0, ends, time.Hour, ends + quietTime, ends + 2*quietTime},
		"an upload is slow": {0, time.Second, begins, begins, begins},
		"somebody waits":    {time.Second, 0, time.Hour, begins, begins + quietTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var forwarded traffic
				begin := time.Now()
				var clients sync.WaitGroup
				defer clients.Wait()
				if name == "somebody waits" {
					time.AfterFunc(begins, func() { forwarded.waiters.Add(1) })
				}
				if c.upload > 0 {
					forwarded.uploads.Add(1)
					clients.Go(func() {
						time.Sleep(c.upload)
						forwarded.noteForwardedBytes()
						forwarded.uploads.Add(-1)
					})
				}
				if c.traffic > 0 {
					forwarded.noteForwardedBytes()
					clients.Go(func() {
						for time.Since(begin) < c.traffic {
							time.Sleep(time.Millisecond)
							forwarded.noteForwardedBytes()
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
