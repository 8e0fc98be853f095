package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

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
	return s.openHandles
}

// TestReadingLeavesNoHandleOpen reads with a store that may write and with one that may not.
func TestReadingLeavesNoHandleOpen(t *testing.T) {
	s, _, writer := readOnlyStore(t)
	for _, s := range []objects.Store{s, writer} {
		if _, err := s.GetRefs(t.Context(), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		idle(t, s) // fails if the handle is not closed by its timer
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetRefs(t.Context(), "refs/heads/main"); !errors.Is(err, objects.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
	}
}

// TestCloseClosesAnIdleHandle closes a store directly after a read.
func TestCloseClosesAnIdleHandle(t *testing.T) {
	s, in, _ := readOnlyStore(t)
	if _, err := s.GetRefs(t.Context(), "refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := openNow(in); n != 0 {
		t.Errorf("%d handles are open", n)
	}
}

// TestReadersInARowShareAHandle holds that an idle handle is used again: a compile reads hundreds of
// times in a row.
func TestReadersInARowShareAHandle(t *testing.T) {
	_, in, _ := readOnlyStore(t)
	r, err := in.acquireReader(t.Context(), "read")
	if err != nil {
		t.Fatal(err)
	}
	h := r.handle
	h.opened = time.Now().Add(time.Hour) // the machine may be busy for longer than shareTime
	in.releaseReader(r)
	in.mu.Lock()
	kept := h.idle && in.shared == h
	in.mu.Unlock()
	if !kept {
		t.Fatal("the handle was closed by its last reader")
	}
	in.closeIdle(h)
	if n := openNow(in); n != 0 {
		t.Errorf("%d handles are open", n)
	}
}

// TestReaderSeesConcurrentWrites lets a writer in between two reads.
func TestReaderSeesConcurrentWrites(t *testing.T) {
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
