package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects/bolt/internal/check"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// pagesFile returns the bytes of a bbolt file with one bucket of n keys, in several leaves, after
// some transactions, so that pages are free.
func pagesFile(t *testing.T, n int) ([]byte, page.Meta) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	for from := range 3 {
		err = db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			for i := from; err == nil && i < n; i += 3 {
				err = b.Put(pageKey(i), bytes.Repeat([]byte{'v'}, 40))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := page.ReadMeta(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return b, m
}

func pageKey(i int) []byte { return fmt.Appendf(nil, "key %06d", i) }

// pageReader notes which pages are read.
type pageReader struct {
	*bytes.Reader

	size int
	read map[uint64]bool
}

func newPageReader(file []byte, m page.Meta) *pageReader {
	return &pageReader{bytes.NewReader(file), m.PageSize, map[uint64]bool{}}
}

func (r *pageReader) ReadAt(b []byte, at int64) (int, error) {
	r.read[uint64(at)/uint64(r.size)] = true
	return r.Reader.ReadAt(b, at)
}

// walkAll walks the bucket from a key on, and returns its keys and the damaged pages.
func walkAll(t *testing.T, w *check.Walker, from []byte) (keys []string, damaged []uint64) {
	t.Helper()
	tree, err := page.NewReader(w.File, w.Meta).Bucket("b")
	if err == nil {
		err = w.Walk(tree, from, func(id uint64, _ error) error {
			damaged = append(damaged, id)
			return nil
		}, func(e page.Entry) error {
			keys = append(keys, string(e.Key))
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys, damaged
}

// TestWalkGoesOnAfterDamage zeroes each leaf in turn: it is reported, and every key of the other
// pages is visited.
func TestWalkGoesOnAfterDamage(t *testing.T) {
	const n = 3000
	file, m := pagesFile(t, n)
	r := newPageReader(file, m)
	w := &check.Walker{File: r}
	w.Reset(m)
	if err := w.ReadFreelist(); err != nil {
		t.Fatal(err)
	}
	if err := w.Walk(page.Tree{Root: m.Root}, nil, func(_ uint64, err error) error { return err }, func(page.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	all, damaged := walkAll(t, w, nil)
	if len(all) != n || len(damaged) > 0 || w.Lost() > 0 {
		t.Fatalf("%d keys of %d, %d damaged pages, %d lost ones", len(all), n, len(damaged), w.Lost())
	}
	leaves := 0
	for id := uint64(2); id < m.HighWater; id++ {
		at := id * uint64(m.PageSize)
		if one := file[at:]; page.Order.Uint64(one) != id || page.Order.Uint16(one[8:]) != page.LeafFlag || !r.read[id] || id == m.Root {
			continue
		}
		leaves++
		bad := bytes.Clone(file)
		clear(bad[at : at+uint64(m.PageSize)])
		other := &check.Walker{File: bytes.NewReader(bad)}
		other.Reset(m)
		keys, damaged := walkAll(t, other, nil)
		if len(keys) >= n || len(keys) < n-200 || !slices.Equal(damaged, []uint64{id}) {
			t.Errorf("without page %d: %d keys, damage of pages %v", id, len(keys), damaged)
		}
	}
	if leaves < 10 {
		t.Errorf("only %d leaves", leaves)
	}
}

// TestWalkBeginsAtAKey visits no page that has only keys before it.
func TestWalkBeginsAtAKey(t *testing.T) {
	const n = 3000
	file, m := pagesFile(t, n)
	for _, from := range []int{0, 1, n / 2, n - 1, n} {
		r := newPageReader(file, m)
		w := &check.Walker{File: r}
		w.Reset(m)
		keys, damaged := walkAll(t, w, pageKey(from))
		if len(keys) != n-from || len(damaged) > 0 || len(keys) > 0 && keys[0] != string(pageKey(from)) {
			t.Errorf("from %d: %d keys, damage of pages %v", from, len(keys), damaged)
		}
		if visited := len(r.read); visited > 8+(n-from)/20 {
			t.Errorf("from %d: %d pages were visited", from, visited)
		}
	}
}

// TestWalkOfAPartCostsWhatThePartDoes walks the same few pages as a part of a small file and as
// a part of one with 16 million pages, and counts the memory that is allocated.
func TestWalkOfAPartCostsWhatThePartDoes(t *testing.T) {
	file, m := pagesFile(t, 3000)
	allocated := func(pages uint64) uint64 {
		m := m
		m.HighWater = pages
		w := &check.Walker{File: bytes.NewReader(file)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 3 {
			w.Reset(m)
			if keys, damaged := walkAll(t, w, pageKey(2900)); len(keys) != 100 || len(damaged) > 0 {
				t.Fatalf("%d keys, damage of pages %v", len(keys), damaged)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := allocated(m.HighWater), allocated(1<<24); large > small+1<<20 {
		t.Errorf("%d bytes are allocated for a part of a small file, and %d for the same part of a large one", small, large)
	}
}

// TestSalvageChoosesTheIntactMetaPage damages one meta page, and both.
func TestSalvageChoosesTheIntactMetaPage(t *testing.T) {
	file, m := pagesFile(t, 10)
	for bad := range 2 {
		b := bytes.Clone(file)
		b[bad*m.PageSize+page.HeaderSize+20] ^= 1
		got, ok := check.BetterMeta(bytes.NewReader(b), int64(len(b)))
		if !ok || got.PageSize != m.PageSize || got.Tx != m.Tx && got.Tx != m.Tx-1 {
			t.Errorf("meta page %d is damaged: %+v, %t", bad, got, ok)
		}
	}
	if got, ok := check.BetterMeta(bytes.NewReader(file), int64(len(file))); !ok || got != m {
		t.Errorf("%+v, %t, want %+v", got, ok, m)
	}
	clear(file[:2*m.PageSize])
	if _, ok := check.BetterMeta(bytes.NewReader(file), int64(len(file))); ok {
		t.Error("a meta page of zeros was read")
	}
}
