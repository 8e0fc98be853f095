package importers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMoreLinesThanAreBuffered: a file with a message on each line may be of any length.
// If the buffered lines do not show the dialect, the file is read as OpenAI messages, and the lines
// that are not buffered are read one by one.
func TestMoreLinesThanAreBuffered(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, `{"role":%q,"content":"words %d"}`+"\n", []string{"user", "assistant"}[i%2], i)
	}
	ids := func(end string, most int) (ids, dialects []string, err error) {
		out := &sink{yield: func(e Entry, _ error) bool {
			ids, dialects = append(ids, e.Parts[0].ID), append(dialects, e.Dialect)
			return true
		}}
		l := newLines("log", strings.NewReader(text.String()+end))
		v, _, err := l.firstValidValue()
		if err == nil {
			m := messageReader{l: l, format: Auto, out: out, maxBufferedBytes: most}
			err = m.readMessagePerLine(v)
		}
		return ids, dialects, errors.Join(append(l.skippedErrors(), err)...)
	}
	const anthropic = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"c"}]}`
	want, clear, err := ids(anthropic, maxBuffered)
	if err != nil || len(want) != 101 || clear[1] != "messages" {
		t.Fatalf("%d entries in %q, %v", len(want), clear[1], err)
	}
	have, unclear, err := ids(anthropic, 1000)
	if err != nil || !slices.Equal(have[:100], want[:100]) || len(have) != 101 || unclear[1] != "chat" {
		t.Errorf("%d entries in %q, %v", len(have), unclear[1], err)
	}
	have, _, err = ids(`{"role":"boss"}`, 1000)
	if err == nil || !strings.HasPrefix(err.Error(), "log:101: decode message: chat: want a message") || len(have) != 100 {
		t.Errorf("a line that is none, behind those that are buffered: %d entries, %v", len(have), err)
	}
	have, _, err = ids(`{"role":`, 1000)
	if err == nil || !strings.HasPrefix(err.Error(), "log:101: the last line is damaged") || len(have) != 100 {
		t.Errorf("a line that is cut off, behind those that are buffered: %d entries, %v", len(have), err)
	}
}
