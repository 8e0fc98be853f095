package framing

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm"
)

// maxEvent is how many bytes one server-sent event may have: 64 MiB.
const maxEvent = 64 << 20

// ServerSentEvent is one server-sent event.
type ServerSentEvent struct {
	Event string // the event's type, "" when the stream gives none
	ID    string // the id given in this frame, "" when there is none
	Data  []byte // the data lines, joined by LF; valid until the next step
}

// ServerSentEvents reads a stream of server-sent events (WHATWG HTML, section 9.2) and
// yields each event as soon as the blank line after it was read, without waiting
// for more. Lines end in LF, CRLF or CR; comments, retry and unknown fields are
// skipped, and so is a frame without data lines. A last frame that no blank line
// ends is yielded as it is, a last line cut anywhere included: whoever reads the
// data finds out.
//
// An error ends the sequence and comes with an empty frame, after all that was
// read before it: the error of r, wrapped, or [llm.ErrTooLong], in which case the long
// event is lost. The end of r is no error. Memory grows with the longest event. The
// sequence can be run once; it does not close r.
func ServerSentEvents(r io.Reader) iter.Seq2[ServerSentEvent, error] {
	return serverSentEvents(r, maxEvent)
}

func serverSentEvents(r io.Reader, limit int) iter.Seq2[ServerSentEvent, error] {
	return func(yield func(ServerSentEvent, error) bool) {
		lines := newLineScanner(r, limit+lineSlack)
		frame := frameBuilder{buf: []byte{}}
		for lines.Scan() {
			if line := lines.Bytes(); len(line) > 0 {
				frame.addLine(line)
			} else if !frame.yieldTo(yield) {
				return
			}
			if len(frame.Data) > limit {
				yield(ServerSentEvent{}, errTooLong)
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(ServerSentEvent{}, errTooLong)
		case frame.yieldTo(yield) && err != nil:
			yield(ServerSentEvent{}, fmt.Errorf("read event stream: %w", err))
		}
	}
}

var errTooLong = fmt.Errorf("read event stream: event or line %w", llm.ErrTooLong)

// frameBuilder assembles an event from lines.
type frameBuilder struct {
	ServerSentEvent
	buf []byte // memory for its data, not nil
}

// addLine takes in one line of a frame.
func (f *frameBuilder) addLine(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if f.Data == nil {
			f.buf = append(f.buf[:0], value...)
		} else {
			f.buf = append(append(f.buf, '\n'), value...)
		}
		f.Data = f.buf[:len(f.buf):len(f.buf)]
	case "event":
		f.Event = string(value)
	case "id":
		f.ID = string(value)
	}
}

// yieldTo yields the frame, if it has data, and begins another. It returns false when the
// consumer wants no more.
func (f *frameBuilder) yieldTo(yield func(ServerSentEvent, error) bool) bool {
	whole := f.ServerSentEvent
	f.ServerSentEvent = ServerSentEvent{}
	return whole.Data == nil || yield(whole, nil)
}

// lineSlack is what a line may have beyond the limit of an event, for the name of a field.
const lineSlack = 1 << 10

// newLineScanner returns a scanner for lines of up to limit bytes that end in LF, CRLF or
// CR. Each is returned as soon as its ending was read: a CR ends a line without waiting for
// an LF, which is skipped when the next line is read. A byte order mark before the first
// line is left out.
func newLineScanner(r io.Reader, limit int) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, limit)
	first, skipLF := true, false
	searched := 0 // bytes of the line that are known to have no ending
	s.Split(func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		start := 0
		if skipLF && len(data) > 0 && data[0] == '\n' {
			start = 1
		}
		searched = max(searched, start)
		end := len(data)
		if n := bytes.IndexAny(data[searched:], "\r\n"); n >= 0 {
			end = searched + n
			skipLF = data[end] == '\r'
			advance = end + 1
		} else if searched = end; atEOF && end > start {
			advance = end
		} else {
			return 0, nil, nil
		}
		line = data[start:end]
		if first {
			line, first = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")), false
		}
		searched = 0
		return advance, line, nil
	})
	return s
}
