package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// readOnlyStore is a store that only reads what a fresh one wrote.
func readOnlyStore(t *testing.T) (s objects.Store, in *store, writer objects.Store) {
	t.Helper()
	writer, path := fresh(t)
	apply(t, writer, "refs/heads/main", "first")
	idle(t, writer)
	s = mustOpen(t, filepath.Dir(path), objects.Options{ReadOnly: true})
	return s, inner(t, s), writer
}

// openNow is the handles there are.
func openNow(s *store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// TestReadingLeavesNoHandleOpen reads with a store that may write and with one that may not.
func TestReadingLeavesNoHandleOpen(t *testing.T) {
	s, _, writer := readOnlyStore(t)
	for _, s := range []objects.Store{s, writer} {
		if _, err := s.GetRefs(t.Context(), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		if n := openNow(inner(t, s)); n != 0 {
			t.Errorf("%d handles are open", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetRefs(t.Context(), "refs/heads/main"); !errors.Is(err, objects.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
	}
}

// TestReaderSeesWhatIsWrittenMeanwhile lets a writer in between two reads.
func TestReaderSeesWhatIsWrittenMeanwhile(t *testing.T) {
	s, _, writer := readOnlyStore(t)
	for _, name := range []string{"refs/heads/second", "refs/heads/third", "refs/heads/fourth"} {
		if got, err := s.GetRefs(t.Context(), name); err != nil || len(got) > 0 {
			t.Fatalf("%s is there before it was written: %v, %v", name, got, err)
		}
		apply(t, writer, name, name)
		if got, err := s.GetRefs(t.Context(), name); err != nil || len(got) != 1 {
			t.Fatalf("%s was written: %v, %v", name, got, err)
		}
	}
}

// TestCloseWhileReadersComeAndGo writes and closes the store while goroutines read.
func TestCloseWhileReadersComeAndGo(t *testing.T) {
	for range 10 {
		s, in, writer := readOnlyStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.GetRefs(ctx, "refs/heads/main"); err != nil && !errors.Is(err, objects.ErrClosed) && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 5 {
			apply(t, writer, fmt.Sprintf("refs/heads/more-%d", i), "more")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := openNow(in); n != 0 {
			t.Errorf("%d handles are open", n)
		}
		cancel()
		readers.Wait()
	}
}
