package providers

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/llm"
)

// jsonTexts yields JSON texts that lie one after the other. One that stands alone may
// be the whole response.
func jsonTexts(r io.Reader, alone bool, yield func(frame, error) bool) {
	t := textReader{r: r}
	for n := 0; ; n++ {
		if _, ok := t.look(); !ok {
			t.fail(yield)
			return
		}
		text := t.text()
		whole := false
		if alone && n == 0 {
			_, more := t.look() // which may move what was read
			text, whole = t.buf[t.from:t.from+len(text)], !more
		}
		if !yield(frame{data: text, whole: whole}, nil) {
			return
		}
		t.from = t.pos
	}
}

// elements yields the elements of a JSON array.
func elements(r io.Reader, yield func(frame, error) bool) {
	t := textReader{r: r}
	var want byte = '['
	for {
		c, ok := t.look()
		switch {
		case !ok:
			t.fail(yield)
			return
		case want != 0 && c == want:
			t.pos++
			want = 0
			continue
		case c == ']' && want != '[':
			yield(frame{last: true}, nil)
			return
		case want != 0 || c != '{':
			yield(frame{}, fmt.Errorf("%w: no list of events: %q in it", llm.ErrProtocol, c))
			return
		}
		t.from = t.pos
		if !yield(frame{data: t.text()}, nil) {
			return
		}
		t.from, want = t.pos, ','
	}
}

// textReader finds where JSON texts end, and leaves it to others to find out
// whether they are JSON. What it gives out lies in its buffer.
type textReader struct {
	r    io.Reader
	buf  []byte
	from int // what lies before is not needed any more
	pos  int // what lies before was read
	err  error
}

// look skips white space. It gives the byte after it, which stays unread, and
// whether there is one.
func (t *textReader) look() (byte, bool) {
	for ; ; t.pos++ {
		if t.pos == len(t.buf) && !t.fill() {
			return 0, false
		}
		switch c := t.buf[t.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c, true
		}
	}
}

// fail yields the error that ended the reading, if it was one. What a connection
// that broke off has brought may be whole: whoever reads it finds out.
func (t *textReader) fail(yield func(frame, error) bool) {
	if t.err != io.EOF && !errors.Is(t.err, io.ErrUnexpectedEOF) {
		yield(frame{}, t.err)
	}
}

// text reads the text that begins here: up to the bracket or the quote that
// closes it, or, when it has none, to what cannot be in it.
func (t *textReader) text() []byte {
	t.from = t.pos
	depth := 0
	for quoted := false; ; t.pos++ {
		if t.pos == len(t.buf) && !t.fill() {
			return t.buf[t.from:]
		}
		c := t.buf[t.pos]
		switch {
		case quoted && c == '\\':
			if t.pos++; t.pos == len(t.buf) && !t.fill() {
				return t.buf[t.from:]
			}
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
			t.pos += plainRun(t.buf[t.pos+1:])
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth == 0 && t.pos > t.from && (c == ',' || c <= ' '):
			return t.buf[t.from:t.pos]
		}
		if depth <= 0 && !quoted && (c == '"' || c == '}' || c == ']') {
			t.pos++
			return t.buf[t.from:t.pos]
		}
	}
}

// plainRun is how many bytes at the beginning of b are inside a string for sure.
func plainRun(b []byte) int {
	n := bytes.IndexByte(b, '"')
	if n < 0 {
		n = len(b)
	}
	if i := bytes.IndexByte(b[:n], '\\'); i >= 0 {
		return i
	}
	return n
}

const (
	firstRead = 4 << 10 // bytes of the buffer for texts, which grows with the longest
	maxReads  = 100     // that give nothing, until the reader counts as broken
)

// fill reads more. It tells whether anything came.
func (t *textReader) fill() bool {
	if t.err != nil {
		return false
	}
	if cap(t.buf)-len(t.buf) <= cap(t.buf)/4 {
		n := copy(t.buf, t.buf[t.from:])
		t.buf, t.pos, t.from = t.buf[:n], t.pos-t.from, 0
	}
	if cap(t.buf)-len(t.buf) <= cap(t.buf)/4 {
		grown := make([]byte, len(t.buf), max(firstRead, 2*cap(t.buf)))
		copy(grown, t.buf)
		t.buf = grown
	}
	for range maxReads {
		n, err := t.r.Read(t.buf[len(t.buf):cap(t.buf)])
		t.buf, t.err = t.buf[:len(t.buf)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	t.err = io.ErrNoProgress
	return false
}
