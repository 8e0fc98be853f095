package providers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm"
)

// maxBody is how many bytes a response may have.
const maxBody = 64 << 20

// frame is one JSON text of a response.
type frame struct {
	event  string
	data   []byte // valid until the next frame
	whole  bool   // it is the whole response, not an event of a stream
	last   bool   // it says that the stream ends
	failed bool   // it says that the response went wrong; event is how
}

// frames cuts a body into frames, each as soon as it is whole. The error is one of
// reading, or says that the body is too long, broken, or that nothing was found in
// it.
func frames(r io.Reader, f llm.Framing) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		body := &beginning{r: r}
		r := bufio.NewReaderSize(&limited{r: body, left: maxBody}, 512)
		if err := firstByte(r); err != nil {
			if err != io.EOF {
				yield(frame{}, err)
			}
			return
		}
		alone := f == llm.FramingAuto
		if f == llm.FramingAuto || f == llm.FramingStream {
			begin, _ := r.Peek(2) // of a body of one byte, that one
			f = look(begin)
		}
		switch f {
		case llm.FramingJSON:
			whole(r, yield)
		case llm.FramingArray:
			elements(r, yield)
		case llm.FramingLines:
			jsonTexts(r, alone, yield)
		case llm.FramingAWS:
			messagesOfAWS(r, yield)
		default:
			events(r, body, yield)
		}
	}
}

// look tells the framing of a stream by how it begins. A message of Amazon's
// begins with its length in four bytes, and no first one is that long.
func look(begin []byte) llm.Framing {
	switch {
	case begin[0] == '{':
		return llm.FramingLines
	case begin[0] == '[':
		return llm.FramingArray
	case !bytes.ContainsFunc(begin, func(r rune) bool { return r != 0 }):
		return llm.FramingAWS
	}
	return llm.FramingSSE
}

// firstByte reads up to the first byte that is not white space or part of a byte
// order mark.
func firstByte(r *bufio.Reader) error {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		switch b {
		case ' ', '\t', '\n', '\r', 0xEF, 0xBB, 0xBF:
			continue
		}
		return r.UnreadByte()
	}
}

func whole(r io.Reader, yield func(frame, error) bool) {
	var buf bytes.Buffer
	_, err := buf.ReadFrom(r)
	if errors.Is(err, io.ErrUnexpectedEOF) && buf.Len() > 0 {
		err = nil // what is there may be whole; if not, parsing it tells
	}
	if err != nil {
		yield(frame{}, err)
		return
	}
	yield(frame{data: buf.Bytes(), whole: true}, nil)
}

// endOfStream is what OpenAI, and servers like it, end a stream with. It is no
// JSON.
var endOfStream = []byte("[DONE]")

func events(r io.Reader, body *beginning, yield func(frame, error) bool) {
	found := false
	for f, err := range llm.ServerSent(r) {
		if err != nil {
			yield(frame{}, err)
			return
		}
		found = true
		data := bytes.TrimSpace(f.Data)
		if len(data) == 0 {
			continue
		}
		last := bytes.HasPrefix(endOfStream, data) // cut short it says so too
		if !yield(frame{event: f.Event, data: data, last: last}, nil) {
			return
		}
	}
	if !found && body.foreign() {
		yield(frame{}, notJSON(errors.New("neither JSON nor events"), body.buf))
	}
}

// limited reads up to a limit. What is longer is an error, not an end.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left == 0 {
		if n, err := l.r.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("response: %w", llm.ErrTooLong)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// notJSON is the error for a text that should be JSON.
func notJSON(err error, text []byte) error {
	return fmt.Errorf("%w: %w in %q", llm.ErrProtocol, err, excerpt(text))
}

// beginning remembers how a body begins.
type beginning struct {
	r   io.Reader
	buf []byte
}

func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if room := 2*maxExcerpt - len(b.buf); room > 0 {
		b.buf = append(b.buf, p[:min(n, room)]...)
	}
	return n, err
}

// foreign tells whether the body cannot be the beginning of a stream of events.
func (b *beginning) foreign() bool {
	text := bytes.TrimSpace(bytes.TrimPrefix(b.buf, []byte("\xEF\xBB\xBF")))
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		if n := min(len(text), len(field)); string(text[:n]) == field[:n] {
			return false
		}
	}
	return true
}
