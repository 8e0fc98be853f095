package tract_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// slowStore writes its first batch only when it is let go on, and notes what each has.
type slowStore struct {
	objects.Store
	goOn    chan struct{}
	sizes   []int // of the words of each batch
	writing atomic.Int32
	most    int32 // that were written at once
}

func (s *slowStore) Apply(ctx context.Context, b objects.Batch) error {
	s.most = max(s.most, s.writing.Add(1))
	defer s.writing.Add(-1)
	size := 0
	for _, o := range b.Put {
		if o.Kind == objects.KindContent {
			size += len(o.Data)
		}
	}
	if s.sizes = append(s.sizes, size); len(s.sizes) == 1 {
		<-s.goOn
	}
	return s.Store.Apply(ctx, b)
}

// TestAnImportIntoASlowStore: while a batch is written the next one grows, but not
// without a bound; none is written beside another, and in memory that is used again
// nothing changes before it is written.
func TestAnImportIntoASlowStore(t *testing.T) {
	const parts, least, most, one = 1200, 1 << 20, 4 << 20, 9 << 10
	slow := &slowStore{Store: objects.Memory(), goOn: make(chan struct{})}
	objects.Register("slow", func(context.Context, string, objects.Options) (objects.Store, error) { return slow, nil })
	text := func(i int) string { return fmt.Sprintf("%d%s", i, strings.Repeat(" words", i*7%1300)) }
	all := 0
	var list iter.Seq2[tract.Foreign, error] = func(yield func(tract.Foreign, error) bool) {
		for i := range parts {
			part := tract.ForeignPart{ID: fmt.Sprint(i), Block: content.User(text(i))}
			if all += len(text(i)); !yield(tract.Foreign{Branch: []string{"a", "b"}[i%2], Parts: []tract.ForeignPart{part}}, nil) {
				return
			}
		}
		close(slow.goOn)
	}
	repo, err := tract.Open(t.Context(), "slow:", tract.Create())
	if err != nil {
		t.Fatal(err)
	}
	before := len(slow.sizes)
	if _, err = repo.Import(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	sizes := slow.sizes[before:]
	for i, size := range sizes {
		if last := i == len(sizes)-1; size > most+one || size < least && !last {
			t.Errorf("batch %d of %d has %d bytes", i, len(sizes), size)
		}
	}
	if len(sizes) < 2 || len(sizes) > all/least+1 || slow.most != 1 {
		t.Errorf("%d bytes in %d batches, %d at once", all, len(sizes), slow.most)
	}
	for k, name := range []string{"a", "b"} {
		have := branches(t, repo)[name]
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
