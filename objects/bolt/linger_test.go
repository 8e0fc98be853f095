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
	return s.open
}

func TestWhoOnlyReadsKeepsTheFileForAMoment(t *testing.T) {
	s, in, _ := readOnlyStore(t)
	opened := map[*handle]bool{}
	began := time.Now()
	for range 20 {
		if _, err := s.GetRefs(t.Context(), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		in.mu.Lock()
		opened[in.shared] = true
		in.mu.Unlock()
	}
	if most := 2 + int(time.Since(began)/idleTime); len(opened) > most { // nil is one of them
		t.Errorf("20 reads opened the file %d times", len(opened))
	}
	idle(t, s) // the timer lets go
	if in.shared != nil {
		t.Error("a closed handle can be joined")
	}
}

func TestWhoWritesKeepsNoHandleForReading(t *testing.T) {
	_, _, writer := readOnlyStore(t)
	if _, err := writer.GetRefs(t.Context(), "refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	if n := openNow(inner(t, writer)); n != 0 {
		t.Errorf("%d handles are open", n)
	}
}

func TestClosingLetsGoOfTheFile(t *testing.T) {
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
	if _, err := s.GetRefs(t.Context(), "refs/heads/main"); !errors.Is(err, objects.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
}

// TestALingeringReaderSeesWhatIsWritten lets a writer in between two reads.
func TestALingeringReaderSeesWhatIsWritten(t *testing.T) {
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

// TestManyReadersAndTimers has readers come and go while timers let go, and the
// store closed in the midst of it.
func TestManyReadersAndTimers(t *testing.T) {
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
