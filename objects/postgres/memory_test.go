//go:build postgres

package postgres

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// growLong puts a history of n commits on a ref, each with a content, and each tenth with an
// object of its own elsewhere. It returns the tip, and keeps nothing.
func growLong(t *testing.T, s objects.Store, ref string, n int) (tip objects.ID) {
	t.Helper()
	const batch = 2000
	for from := 0; from < n; from += batch {
		var b objects.Batch
		old := tip
		for i := from; i < min(from+batch, n); i++ {
			content := objects.New(objects.KindContent, nil, nil, fmt.Append(nil, "message ", i, " of ", n))
			links := []objects.ID{content.ID}
			if i%10 == 0 {
				manifest := objects.New(objects.KindManifest, nil, []objects.ID{content.ID}, fmt.Append(nil, "manifest ", i))
				links, b.Put = append(links, manifest.ID), append(b.Put, manifest)
			}
			var parents []objects.ID
			if !tip.IsZero() {
				parents = []objects.ID{tip}
			}
			c := objects.New(objects.KindCommit, parents, links, fmt.Append(nil, "header ", i))
			b.Put, tip = append(b.Put, content, c), c.ID
		}
		if ref != "" {
			b.Refs = []objects.RefUpdate{{Name: ref, Old: old, New: tip}}
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return tip
}

// peak returns by how much the live heap grows at most while f runs.
func peak(f func()) (bytes int64) {
	live := func() int64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	before := live()
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		high := before
		for {
			select {
			case <-done:
				most <- high
				return
			case <-time.After(20 * time.Millisecond):
				high = max(high, live())
			}
		}
	}()
	f()
	close(done)
	return max(0, <-most-before)
}

// TestMemoryOfALongHistory walks, audits and sweeps histories of two lengths: the longer
// one takes no more memory. With TRACT_TORTURE it has a million commits.
func TestMemoryOfALongHistory(t *testing.T) {
	// The live heap has what was allocated during a collection, so that it differs from run to
	// run. A graph in memory takes 300 bytes or more for each commit, a list of hashes 16.
	short, long, allowed := 5_000, 40_000, int64(6<<20)
	if os.Getenv("TRACT_TORTURE") != "" {
		short, long, allowed = 100_000, 1_000_000, 16<<20
	}
	peaks := map[string][2]int64{}
	for i, n := range []int{short, long} {
		s := openURL(t, freshURL(t))
		tip := growLong(t, s, "refs/heads/main", n)
		growLong(t, s, "", n/10) // which no ref names
		in, _ := objects.As[*store](s)
		in.sealer.running.Wait() // nothing goes on in the background
		if err := in.repack(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, _ := objects.As[objects.Maintainer](s)
		for name, f := range map[string]func() error{
			"walk": func() error {
				_, err := drain(s.Chain(t.Context(), tip, objects.ChainOptions{}))
				return err
			},
			"audit": func() error {
				return m.Audit(t.Context(), objects.Audit{Damage: func(d objects.Damage) error { return fmt.Errorf("damage: %+v", d) }})
			},
			"sweep": func() error {
				done, err := m.Sweep(t.Context(), objects.Sweep{Before: time.Now().Add(time.Hour), Dry: true})
				if want := 2 * (n / 10); err == nil && done.Removed < want {
					err = fmt.Errorf("%d objects are unreachable, want at least %d", done.Removed, want)
				}
				return err
			},
		} {
			start, of := time.Now(), peaks[name]
			of[i] = peak(func() {
				if err := f(); err != nil {
					t.Fatalf("%s of %d commits: %v", name, n, err)
				}
			})
			peaks[name] = of
			t.Logf("%s of %d commits: %d KB, %v", name, n, of[i]>>10, time.Since(start).Round(time.Millisecond))
		}
	}
	for name, of := range peaks {
		if of[1] > of[0]+allowed {
			t.Errorf("%s takes %d KB for %d commits, and %d KB for %d", name, of[0]>>10, short, of[1]>>10, long)
		}
	}
}
