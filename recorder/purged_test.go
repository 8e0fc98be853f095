package recorder_test

import (
	"testing"

	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/recorder"
)

// TestPurgedContentIsNotRecordedAgain purges a question, or an answer, of a conversation
// that a client goes on with: it sends all of it each time, and knows of nothing. The
// conversation is found all the same, and what is gone stays gone. What the client says
// anew is new, also when it is the same.
func TestPurgedContentIsNotRecordedAgain(t *testing.T) {
	for _, c := range []struct{ rev, gone, end string }{
		{":/4711", " | A1 | Q2 | A2 | Q3 | A3", "it is 4711 | A1 | Q2 | A2 | Q3 | A3 | it is 4711 | A4"}, // equal words are one object
		{"main~3", "it is 4711 |  | Q2 | A2 | Q3 | A3", "it is 4711 |  | Q2 | A2 | Q3 | A3 | it is 4711 | A4"},
	} {
		for _, again := range []bool{false, true} {
			w := newWire(t, "mem:", says("A1", "A2", "A3", "A4"))
			main := recorder.On(t.Context(), "main")
			w.ask(main, "it is 4711")
			w.ask(main, "it is 4711", "A1", "Q2")
			w.settle()
			if _, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Revs: []string{c.rev}, Why: "told"}); err != nil {
				t.Fatal(err)
			}
			if again {
				w.records(w.repo) // another process
			}
			w.ask(main, "it is 4711", "A1", "Q2", "A2", "Q3")
			w.want(map[string]string{"main": c.gone})
			w.ask(main, "it is 4711", "A1", "Q2", "A2", "Q3", "A3", "it is 4711")
			w.want(map[string]string{"main": c.end})
		}
	}
}
