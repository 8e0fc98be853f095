package bolt

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
)

// line grows a branch of commits with a content each, as an agent does.
func line(t testing.TB, s objects.Store, name string, n int) (tip objects.ID) {
	t.Helper()
	for done := 0; done < n; {
		b, from := objects.Batch{}, tip
		for range min(n-done, 1000) {
			c := objects.New(objects.KindContent, nil, nil, fmt.Appendf(nil, "%s %d %0600d", name, done, done))
			var parents []objects.ID
			if !tip.IsZero() {
				parents = []objects.ID{tip}
			}
			k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, fmt.Append(nil, done))
			b.Put = append(b.Put, c, k)
			tip = k.ID
			done++
		}
		b.Refs = []objects.RefUpdate{{Name: "refs/heads/" + name, Old: from, New: tip}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return tip
}

func appendOne(b testing.TB, s objects.Store, name string, i int) error {
	return s.Update(b.Context(), "refs/heads/"+name, func(tip objects.ID) (objects.Batch, error) {
		c := objects.New(objects.KindContent, nil, nil, fmt.Appendf(nil, "%s %d %0600d", name, i, i))
		var parents []objects.ID
		if !tip.IsZero() {
			parents = []objects.ID{tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, nil)
		return objects.Batch{
			Put:  []objects.Object{c, k},
			Refs: []objects.RefUpdate{{Name: "refs/heads/" + name, Old: tip, New: k.ID}},
			Note: objects.Note{Time: time.Now(), Command: "commit"},
		}, nil
	})
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds())
}

// BenchmarkBarePut is what an append costs bbolt itself: one key, file kept open.
func BenchmarkBarePut(b *testing.B) {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	took := []time.Duration{}
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Appendf(nil, "%020d", i), make([]byte, 600))
		})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	b.ReportMetric(median(took), "p50-us")
}

// BenchmarkAppend is one durable commit with its content, on one branch.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{0, 100_000} {
		b.Run(fmt.Sprint("store of ", size), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "s"), objects.Options{Create: true})
			line(b, s, "main", size)
			took := []time.Duration{}
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if err := appendOne(b, s, "main", size+i); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(median(took), "p50-us")
		})
	}
}

// BenchmarkAppendMany is the same by many goroutines, on one branch and on one each.
func BenchmarkAppendMany(b *testing.B) {
	for _, c := range []struct{ writers, branches int }{{64, 1}, {64, 64}, {1000, 1}, {1000, 1000}} {
		b.Run(fmt.Sprintf("%d writers of %d branches", c.writers, c.branches), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "s"), objects.Options{Create: true})
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range c.writers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if err := appendOne(b, s, fmt.Sprint(w%c.branches), int(i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "s"), objects.Options{Create: true})
	tip := line(b, s, "main", 100_000)
	b.Run("ref", func(b *testing.B) {
		for b.Loop() {
			if _, err := objects.ReadRef(b.Context(), s, "refs/heads/main"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("object", func(b *testing.B) {
		for b.Loop() {
			if _, err := objects.Read(b.Context(), s, tip); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("chain of 100000", func(b *testing.B) {
		for b.Loop() {
			for _, err := range s.Chain(b.Context(), tip, objects.ChainOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
