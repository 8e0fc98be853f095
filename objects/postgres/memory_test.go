//go:build postgres

package postgres

import (
	"fmt"
	"os"
	"runtime"
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

// heap measures by how much the live heap grows while something runs.
type heap struct {
	every, calls int
	before, most uint64
}

func newHeap(every int) *heap {
	h := &heap{every: max(1, every)}
	h.before = h.live()
	return h
}

func (h *heap) live() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// sample is called by what runs, from its own goroutine, so that nothing is allocated meanwhile.
func (h *heap) sample() {
	if h.calls++; h.calls%h.every == 0 {
		h.most = max(h.most, h.live())
	}
}

func (h *heap) growth() int64 { return max(0, int64(h.most)-int64(h.before)) }

// TestMemoryOfALongHistory walks, audits and sweeps histories of two lengths: the longer one
// takes no more memory. With TRACT_TORTURE it has a million commits.
func TestMemoryOfALongHistory(t *testing.T) {
	short, long := 5_000, 40_000
	if os.Getenv("TRACT_TORTURE") != "" {
		short, long = 100_000, 1_000_000
	}
	const allowed = 1 << 20 // more: a graph in memory takes 300 bytes or more for each commit
	const samples = 50      // about
	growth := map[string][2]int64{}
	for i, n := range []int{short, long} {
		s := openURL(t, freshURL(t))
		tip := growLong(t, s, "refs/heads/main", n)
		growLong(t, s, "", n/10) // which no ref names
		in, _ := objects.As[*store](s)
		in.sealer.running.Wait() // nothing goes on in the background
		if err := in.sealLongTails(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, _ := objects.As[objects.Maintainer](s)
		for name, f := range map[string]func() (*heap, error){
			"walk": func() (*heap, error) {
				h := newHeap(n / samples)
				for _, err := range s.Chain(t.Context(), tip, objects.ChainOptions{}) {
					if err != nil {
						return h, err
					}
					h.sample()
				}
				return h, nil
			},
			"audit": func() (*heap, error) {
				h := newHeap(n / segmentSize / samples)
				return h, m.Audit(t.Context(), objects.Audit{
					Objects: func([]objects.Object) error { h.sample(); return nil },
					Damage:  func(d objects.Damage) error { return fmt.Errorf("damage: %+v", d) },
				})
			},
			"sweep": func() (*heap, error) {
				h := newHeap(n / segmentSize / 16 / samples)
				done, err := m.Sweep(t.Context(), objects.Sweep{
					Before: time.Now().Add(time.Hour), Dry: true, Progress: func(_, _ int64) { h.sample() },
				})
				if want := 2 * (n / 10); err == nil && done.Removed < want {
					err = fmt.Errorf("%d objects are unreachable, want at least %d", done.Removed, want)
				}
				return h, err
			},
		} {
			start := time.Now()
			h, err := f()
			if err != nil {
				t.Fatalf("%s of %d commits: %v", name, n, err)
			}
			of := growth[name]
			of[i] = h.growth()
			growth[name] = of
			t.Logf("%s of %d commits: %d KB, %v", name, n, of[i]>>10, time.Since(start).Round(time.Millisecond))
		}
	}
	for name, of := range growth {
		if of[1] > of[0]+allowed {
			t.Errorf("%s takes %d KB for %d commits, and %d KB for %d", name, of[0]>>10, short, of[1]>>10, long)
		}
	}
}
