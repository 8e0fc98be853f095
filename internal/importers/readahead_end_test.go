package importers

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// byLine is a file that comes line by line.
type byLine struct {
	lines []string
	came  int
}

func (b *byLine) Read(p []byte) (int, error) {
	if b.came == len(b.lines) {
		return 0, io.EOF
	}
	b.came++
	return copy(p, b.lines[b.came-1]), nil
}

// TestGivenFormatIsNotDetected checks that lines are not buffered for the detection of their format if
// the caller states the format Anthropic.
func TestGivenFormatIsNotDetected(t *testing.T) {
	for format, most := range map[Format]int{Anthropic: 4, Auto: 100} {
		b := new(byLine)
		for i := range 100 {
			b.lines = append(b.lines, fmt.Sprintf(`{"role":%q,"content":"words %d"}`+"\n", []string{"user", "assistant"}[i%2], i))
		}
		for e, err := range Read("log", b, format) {
			if err != nil || e.Parts[0].Block.String() != "words 0" {
				t.Errorf("%s: %+v, %v", format, e, err)
			}
			break
		}
		if b.came > most || b.came < most/2 {
			t.Errorf("%s: after the first message %d lines were read", format, b.came)
		}
	}
}

// TestDamagedLastBufferedLine checks that a damaged line counts as the last of the file only if nothing
// follows it, also when no more lines can be buffered.
func TestDamagedLastBufferedLine(t *testing.T) {
	const good, bad = `{"role":"user","content":"words"}`, `{"role":"assistant","content":"\q"}`
	for rest, last := range map[string]bool{"": true, "\n": true, "\n" + good: false, "\n" + good + "\n": false} {
		want := 2 + strings.Count(rest, good)
		for _, most := range []int{2*len(good) + len(bad), maxBuffered} { // the damaged one is the last that is buffered, or all are
			n := 0
			out := &sink{yield: func(Entry, error) bool { n++; return true }}
			l := newLines("log", strings.NewReader(good+"\n"+good+"\n"+bad+rest))
			v, _, err := l.firstValidValue()
			if err == nil {
				m := messageReader{l: l, format: Auto, out: out, maxBufferedBytes: most}
				err = m.readMessagePerLine(v)
			}
			var line *LineError
			bad := l.skippedErrors()
			if err != nil || len(bad) != 1 || !errors.As(bad[0], &line) || line.Line != 3 || line.Last != last || n != want {
				t.Errorf("%q behind it, at most %d bytes buffered: %d entries, %v, %v", rest, most, n, bad, err)
			}
		}
	}
}
