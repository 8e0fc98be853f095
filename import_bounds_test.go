package tract_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// batchSizes is a store that notes how many bytes of text each batch has.
type batchSizes struct {
	objects.Store
	mu    sync.Mutex
	sizes []int
}

// written returns the bytes of all batches.
func (s *batchSizes) written() (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range s.sizes {
		sum += size
	}
	return sum
}

// Unwrap gives the store that does the work; see objects.As.
func (s *batchSizes) Unwrap() objects.Store { return s.Store }

func (s *batchSizes) Apply(ctx context.Context, b objects.Batch) error {
	size := 0
	for _, o := range b.Put {
		if o.Kind == objects.KindContent {
			size += len(o.Data)
		}
	}
	s.mu.Lock()
	s.sizes = append(s.sizes, size)
	s.mu.Unlock()
	return s.Store.Apply(ctx, b)
}

// TestImportBatchesAreBounded: an import of any length holds two batches at a time, one that is made and
// one that is written, and a batch ends with the message that makes it large enough: the first ones are small,
// so that writing begins soon.
func TestImportBatchesAreBounded(t *testing.T) {
	const parts, least, most, one = 1200, 1 << 20, 4 << 20, 36 << 10
	store := &batchSizes{Store: objects.Memory()}
	text := func(i int) string { return fmt.Sprintf("%d%s", i, strings.Repeat(" words", 4*(i*7%1300))) }
	read, held := 0, 0
	var list iter.Seq2[tract.ImportedMessage, error] = func(yield func(tract.ImportedMessage, error) bool) {
		for i := range parts {
			part := tract.ImportedPart{ID: fmt.Sprint(i), Block: content.User(text(i))}
			if read += len(text(i)); !yield(tract.ImportedMessage{Branch: []string{"a", "b"}[i%2], Parts: []tract.ImportedPart{part}}, nil) {
				return
			}
			held = max(held, read-store.written())
		}
	}
	repo := repoOf(t, store)
	store.sizes = nil
	if _, err := repo.Import(t.Context(), list, tract.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, size := range store.sizes {
		if last := i == len(store.sizes)-1; size > most+one || size < least && !last {
			t.Errorf("batch %d of %d has %d bytes", i, len(store.sizes), size)
		}
	}
	if len(store.sizes) < 3 || held > 2*(most+one) {
		t.Errorf("%d bytes in %d batches, %d held", read, len(store.sizes), held)
	}
	all := branches(t, repo)
	for k, name := range []string{"a", "b"} {
		have := all[name]
		if len(have) != parts/2 {
			t.Fatalf("%d commits on %s", len(have), name)
		}
		for i, c := range have {
			got, err := repo.Show(t.Context(), c.ID.String())
			if want := text(2*i + k); err != nil || got.Block.String() != want {
				t.Fatalf("commit %d on %s: %v, %.20q, want %.20q", i, name, err, got.Block, want)
			}
		}
	}
}
