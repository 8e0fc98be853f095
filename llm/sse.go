package llm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxEvent is how many bytes one server-sent event or one line may have: 64 MiB.
const MaxEvent = 64 << 20

// ErrTooLong is wrapped by the error for an event or a line of more than
// [MaxEvent] bytes.
var ErrTooLong = errors.New("longer than 64 MiB")

// Frame is one server-sent event.
type Frame struct {
	Event string // the event's type, "" when the stream gives none
	ID    string // the id given in this frame, "" when there is none
	Data  []byte // the data lines, joined by LF; valid until the next step
}

// ServerSent reads a stream of server-sent events (WHATWG HTML, section 9.2) and
// yields each event as soon as the blank line after it was read, without waiting
// for more. Lines end in LF, CRLF or CR; comments, retry and unknown fields are
// skipped, and so is a frame without data lines. A last frame that no blank line
// ends is yielded as it is, a last line cut anywhere included: whoever reads the
// data finds out.
//
// An error ends the sequence and comes with an empty frame, after all that was
// read before it: the error of r, wrapped, or [ErrTooLong], in which case the long
// event is lost. The end of r is no error. The buffer grows with the longest event,
// to 5/4 of MaxEvent at most. The sequence can be run once; it does not close r.
func ServerSent(r io.Reader) iter.Seq2[Frame, error] {
	return serverSent(r, MaxEvent)
}

func serverSent(r io.Reader, limit int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s := eventReader{lines: lineReader{r: r, limit: limit + lineSlack}, limit: limit}
		for {
			frame, err := s.next()
			if frame.Data != nil && !yield(frame, nil) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield(Frame{}, fmt.Errorf("read event stream: %w", err))
				}
				return
			}
		}
	}
}

// Lines reads lines that end in LF, CRLF or CR (newline-delimited JSON) and yields
// each that is not blank, without its ending, as soon as it is whole. A line is
// valid until the next step. Errors, the last line and memory are as with
// [ServerSent].
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return lines(r, MaxEvent)
}

func lines(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l := lineReader{r: r, limit: limit}
		for {
			line, err := l.next()
			if len(bytes.TrimSpace(line)) > 0 && !yield(line, nil) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield(nil, fmt.Errorf("read lines: %w", err))
				}
				return
			}
		}
	}
}

// eventReader makes frames of lines.
type eventReader struct {
	lines lineReader
	limit int // of the data of one frame
	event string
	id    string
	types map[string]string // event types seen, to allocate each but once
}

// next reads up to the end of a frame. The frame has nil Data when it is none;
// with an error it is what was read before.
func (s *eventReader) next() (Frame, error) {
	for {
		line, err := s.lines.next()
		if err == nil && len(line) == 0 {
			if f := s.frame(); f.Data != nil {
				return f, nil
			}
			continue
		}
		s.field(line)
		if s.lines.held() > s.limit {
			return Frame{}, s.lines.tooLong()
		}
		if err != nil {
			return s.frame(), err
		}
	}
}

// field takes in one line of a frame.
func (s *eventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		s.lines.keep(value)
	case "event":
		s.event = s.intern(value)
	case "id":
		s.id = string(value)
	}
}

// frame is what the lines since the last frame make together.
func (s *eventReader) frame() Frame {
	f := Frame{Event: s.event, ID: s.id, Data: s.lines.kept()}
	s.event, s.id = "", ""
	return f
}

// maxTypes bounds the memory for event types; a protocol has a few dozen.
const maxTypes = 256

func (s *eventReader) intern(b []byte) string {
	if t, ok := s.types[string(b)]; ok {
		return t
	}
	if s.types == nil {
		s.types = make(map[string]string)
	}
	t := string(b)
	if len(s.types) < maxTypes {
		s.types[t] = t
	}
	return t
}

// lineReader cuts what it reads into lines and can keep pieces of them. Everything
// lies in one buffer:
//
//	buf: ...[lo:hi] kept ... [pos:seen] no line end here ... [seen:end] unknown
//
// Kept pieces are joined by moving them together, to the left, so that a long
// event is read to where it stays and copied only while the buffer grows.
type lineReader struct {
	r     io.Reader
	limit int // of a line and what is kept together, in bytes

	buf       []byte
	lo, hi    int
	keeps     bool // [lo:hi] counts, even when it is empty
	done      bool // [lo:hi] was given out, the next step drops it
	pos, seen int
	end       int

	err    error // of r, held back until the bytes before it are used up
	begun  bool  // a line was given out: no byte order mark from here on
	skipLF bool  // the last line ended in CR: an LF here belongs to it
}

const (
	firstBuffer = 4 << 10
	lineSlack   = 1 << 10 // beyond the limit of an event, for the name of a field
	maxReads    = 100     // that give nothing, until the reader counts as broken
)

// next returns the next line without its ending. It is valid until the next call.
// With an error it is what came after the last line end, perhaps nothing.
func (l *lineReader) next() ([]byte, error) {
	if l.done {
		l.keeps, l.done = false, false
	}
	for {
		if l.skipLF && l.pos < l.end {
			if l.buf[l.pos] == '\n' {
				l.pos++
				l.seen = l.pos
			}
			l.skipLF = false
		}
		for ; l.seen < l.end; l.seen++ {
			if c := l.buf[l.seen]; c == '\n' || c == '\r' {
				line := l.buf[l.pos:l.seen]
				l.skipLF = c == '\r'
				l.seen++
				l.pos = l.seen
				return l.checked(line, nil)
			}
		}
		if l.err != nil {
			line := l.buf[l.pos:l.end]
			l.pos, l.seen = l.end, l.end
			return l.checked(line, l.err)
		}
		if l.held()+l.end-l.pos > l.limit {
			return nil, l.tooLong()
		}
		l.fill()
	}
}

// checked is what next returns for a line.
func (l *lineReader) checked(line []byte, err error) ([]byte, error) {
	if !l.begun {
		l.begun = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	if l.held()+len(line) > l.limit {
		return nil, l.tooLong()
	}
	return line, err
}

// tooLong makes the reader give nothing but the error that it returns.
func (l *lineReader) tooLong() error {
	l.pos, l.seen, l.keeps = l.end, l.end, false
	l.err = fmt.Errorf("event or line %w", ErrTooLong)
	return l.err
}

// keep adds b, a part of the last line, to what is kept, after an LF when it is
// not the first.
func (l *lineReader) keep(b []byte) {
	if l.keeps {
		l.buf[l.hi] = '\n'
		l.hi += 1 + copy(l.buf[l.hi+1:], b)
		return
	}
	l.keeps = true
	l.lo = l.pos
	if len(b) > 0 {
		l.lo = cap(l.buf) - cap(b) // where b begins in buf
	}
	l.hi = l.lo + len(b)
}

// held is how many bytes are kept.
func (l *lineReader) held() int {
	if l.keeps {
		return l.hi - l.lo
	}
	return 0
}

// kept returns what is kept, nil when nothing is. It is valid until the next call
// of next, which forgets it.
func (l *lineReader) kept() []byte {
	if !l.keeps {
		return nil
	}
	l.done = true
	return l.buf[l.lo:l.hi:l.hi]
}

// fill reads once, after making room.
func (l *lineReader) fill() {
	l.room()
	for range maxReads {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// room moves what is needed to the front of the buffer when its end is reached,
// and grows the buffer when that would free less than half of it.
func (l *lineReader) room() {
	if l.end < len(l.buf) {
		return
	}
	into, kept := l.buf, l.held()
	if need := kept + l.end - l.pos; need >= len(l.buf)/2 {
		size := max(firstBuffer, min(2*len(l.buf), l.limit+l.limit/4+firstBuffer))
		if size > len(l.buf) {
			into = make([]byte, size)
		}
	}
	copy(into, l.buf[l.lo:l.lo+kept])
	copy(into[kept:], l.buf[l.pos:l.end])
	l.seen += kept - l.pos
	l.end += kept - l.pos
	l.lo, l.hi, l.pos = 0, kept, kept
	l.buf = into
}
