package framing

import (
	"bufio"
	"bytes"
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
		s := sseReader{lines: lineReader{r: bufio.NewReader(r), limit: limit + lineSlack}, limit: limit, buf: []byte{}}
		for {
			frame, err := s.next()
			if frame.Data != nil && !yield(frame, nil) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield(ServerSentEvent{}, fmt.Errorf("read event stream: %w", err))
				}
				return
			}
		}
	}
}

var errTooLong = fmt.Errorf("event or line %w", llm.ErrTooLong)

// sseReader assembles events from lines.
type sseReader struct {
	lines lineReader
	limit int             // of the data of one frame
	frame ServerSentEvent // that is being read
	buf   []byte          // memory for its data, not nil
}

// next reads up to the end of a frame. The frame has nil Data when it is none;
// with an error it is what was read before.
func (s *sseReader) next() (ServerSentEvent, error) {
	s.frame = ServerSentEvent{}
	for {
		line, err := s.lines.next()
		if err == nil && len(line) == 0 {
			if s.frame.Data != nil {
				return s.frame, nil
			}
			s.frame = ServerSentEvent{}
			continue
		}
		s.field(line)
		if len(s.frame.Data) > s.limit {
			return ServerSentEvent{}, errTooLong
		}
		if err != nil {
			return s.frame, err
		}
	}
}

// field takes in one line of a frame.
func (s *sseReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if s.frame.Data == nil {
			s.buf = append(s.buf[:0], value...)
		} else {
			s.buf = append(append(s.buf, '\n'), value...)
		}
		s.frame.Data = s.buf[:len(s.buf):len(s.buf)]
	case "event":
		s.frame.Event = string(value)
	case "id":
		s.frame.ID = string(value)
	}
}

// lineSlack is what a line may have beyond the limit of an event, for the name of a field.
const lineSlack = 1 << 10

// lineReader splits what it reads into lines.
type lineReader struct {
	r             *bufio.Reader
	limit         int // of a line, in bytes
	line          bytes.Buffer
	firstLineRead bool // a line was returned: no byte order mark from here on
	skipLF        bool // the last line ended in CR: an LF here belongs to it
}

// next returns the next line without its ending, as soon as that was read. It is valid
// until the next call. With an error it is what came after the last line end, perhaps
// nothing.
func (l *lineReader) next() ([]byte, error) {
	l.line.Reset()
	for {
		if _, err := l.r.Peek(1); err != nil {
			return l.trimmed(), err
		}
		part, _ := l.r.Peek(l.r.Buffered())
		end := bytes.IndexAny(part, "\r\n")
		skip := l.skipLF && part[0] == '\n'
		l.skipLF = end >= 0 && part[end] == '\r'
		switch {
		case skip:
			_, _ = l.r.Discard(1)
			continue
		case end < 0:
			end = len(part)
		}
		l.line.Write(part[:end])
		if l.line.Len() > l.limit {
			return nil, errTooLong
		}
		if end == len(part) {
			_, _ = l.r.Discard(end)
			continue
		}
		_, _ = l.r.Discard(end + 1)
		return l.trimmed(), nil
	}
}

// trimmed returns the line, without the byte order mark that the first line may have.
func (l *lineReader) trimmed() []byte {
	line := l.line.Bytes()
	if !l.firstLineRead {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	l.firstLineRead = true
	return line
}
