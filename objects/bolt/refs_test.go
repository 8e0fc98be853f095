package bolt

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestReadingTheLogCopiesNoJournal asks for the newest move of a ref, which a read of a ref that
// does not exist does too: how much that allocates does not depend on the journal.
func TestReadingTheLogCopiesNoJournal(t *testing.T) {
	s, _ := fresh(t)
	in := idle(t, s)
	for i := range 300 {
		apply(t, s, fmt.Sprintf("refs/heads/%03d", i), "x")
	}
	err := in.view(t.Context(), "read", func(l *snapshot) error {
		var before, after runtime.MemStats
		const times = 100
		runtime.ReadMemStats(&before)
		for range times {
			if r, err := l.ref("refs/tags/none"); err != nil || r.Target != (objects.ID{}) {
				t.Fatalf("a ref that does not exist: %+v, %v", r, err)
			}
		}
		runtime.ReadMemStats(&after)
		if n := len(l.mem.All(movesBucket, l.mark)); n < 300 {
			t.Fatalf("the journal has %d moves", n)
		}
		if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 8<<10 {
			t.Errorf("a read of a ref that does not exist allocates %d bytes", each)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
