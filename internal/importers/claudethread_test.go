package importers

import (
	"fmt"
	"testing"
)

// TestForksAreNotKept checks that of a log with many forks only the threads with an open message are
// kept: each new thread examines them.
func TestForksAreNotKept(t *testing.T) {
	entries := 0
	c := newClaudeCode(&sink{yield: func(Entry, error) bool { entries++; return true }})
	const forks = 100
	for i := range forks {
		parent := `"u0"`
		if i == 0 {
			parent = "null"
		}
		for _, line := range []string{
			fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"sessionId":"s","message":{"role":"user","content":"Why?"}}`, i, parent),
			fmt.Sprintf(`{"type":"assistant","uuid":"a%d","parentUuid":"u%d","sessionId":"s","message":{"id":"m%d","model":"m","content":[{"type":"text","text":"So."}]}}`, i, i, i),
		} {
			if err := c.addLine([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(c.openThreads); n > 1 {
			t.Fatalf("after %d forks %d threads are kept", i, n)
		}
	}
	c.flushAll()
	if entries != 2*forks || len(c.openThreads) > 0 {
		t.Errorf("%d entries, want %d; %d threads are kept", entries, 2*forks, len(c.openThreads))
	}
}
