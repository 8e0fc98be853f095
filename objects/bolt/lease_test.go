package bolt

import (
	"fmt"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestLeaseIsKeptBetweenCalls has calls that follow one another use one handle, until another
// process waits for the store or it is closed.
func TestLeaseIsKeptBetweenCalls(t *testing.T) {
	s, path := fresh(t)
	in := idle(t, s)
	in.leaseIdle = time.Hour
	handles := map[*handle]bool{}
	for i := range 10 {
		apply(t, s, fmt.Sprint("refs/heads/", i), "x")
		time.Sleep(2 * leasePoll) // in which the lease could end
		err := in.view(t.Context(), "read", func(*snapshot) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			handles[in.shared] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(handles) != 1 {
		t.Errorf("10 writes and 10 reads in a row have opened the store %d times", len(handles))
	}
	for h := range handles {
		if h == nil || !h.writer {
			t.Error("a read after a write does not use the handle of the writer")
		}
	}
	other := mustOpen(t, path, objects.Options{}) // its locks are those of another process
	apply(t, other, "refs/heads/other", "y")
	idle(t, s)
	apply(t, s, "refs/heads/main", "z")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
