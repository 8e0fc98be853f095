package framing

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// maxBody is how many bytes a response may have.
const maxBody = 64 << 20

// frame is one JSON text of a response.
type Frame struct {
	Event  string
	Data   []byte // valid until the next frame
	Whole  bool   // it is the whole response, not an event of a stream
	Last   bool   // it says that the stream ends
	Failed bool   // it says that the response went wrong; event is how
}

// frames cuts a body into frames, each as soon as it is whole. The error is one of
// reading, or says that the body is too long, broken, or that nothing was found in
// it.
func Read(r io.Reader, f llm.Framing) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		body := &prefixReader{r: r}
		r := bufio.NewReaderSize(&limitedReader{r: body, remaining: maxBody}, 512)
		if err := skipToFirstByte(r); err != nil {
			if err != io.EOF {
				yield(Frame{}, err)
			}
			return
		}
		alone := f == llm.FramingAuto
		if f == llm.FramingAuto || f == llm.FramingStream {
			begin, _ := r.Peek(2) // of a body of one byte, that one
			f = detect(begin)
		}
		switch f {
		case llm.FramingJSON:
			readWhole(r, yield)
		case llm.FramingArray:
			readArray(r, yield)
		case llm.FramingLines:
			readTexts(r, alone, yield)
		case llm.FramingAWS:
			readAWS(r, yield)
		default:
			readSSE(r, body, yield)
		}
	}
}

// look tells the framing of a stream by how it begins. A message of Amazon's
// begins with its length in four bytes, and no first one is that long.
func detect(begin []byte) llm.Framing {
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
func skipToFirstByte(r *bufio.Reader) error {
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

func readWhole(r io.Reader, yield func(Frame, error) bool) {
	var buf bytes.Buffer
	_, err := buf.ReadFrom(r)
	if errors.Is(err, io.ErrUnexpectedEOF) && buf.Len() > 0 {
		err = nil // what is there may be whole; if not, parsing it tells
	}
	if err != nil {
		yield(Frame{}, err)
		return
	}
	yield(Frame{Data: buf.Bytes(), Whole: true}, nil)
}

// endOfStream is what OpenAI, and servers like it, end a stream with. It is no
// JSON.
var endOfStream = []byte("[DONE]")

func readSSE(r io.Reader, body *prefixReader, yield func(Frame, error) bool) {
	found := false
	for f, err := range ServerSentEvents(r) {
		if err != nil {
			yield(Frame{}, err)
			return
		}
		found = true
		data := bytes.TrimSpace(f.Data)
		if len(data) == 0 {
			continue
		}
		last := bytes.HasPrefix(endOfStream, data) // cut short it says so too
		if !yield(Frame{Event: f.Event, Data: data, Last: last}, nil) {
			return
		}
	}
	if !found && body.cannotBeSSE() {
		yield(Frame{}, SyntaxError(errors.New("neither JSON nor events"), body.buf))
	}
}

// limited reads up to a limit. What is longer is an error, not an end.
type limitedReader struct {
	r         io.Reader
	remaining int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.remaining == 0 {
		if n, err := l.r.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("response: %w", llm.ErrTooLong)
	}
	n, err := l.r.Read(p[:min(len(p), l.remaining)])
	l.remaining -= n
	return n, err
}

// notJSON is the error for a text that should be JSON.
func SyntaxError(err error, text []byte) error {
	return fmt.Errorf("%w: %w in %q", llm.ErrProtocol, err, rawjson.Excerpt(text))
}

// beginning remembers how a body begins.
type prefixReader struct {
	r   io.Reader
	buf []byte
}

func (b *prefixReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if room := 2*rawjson.MaxExcerpt - len(b.buf); room > 0 {
		b.buf = append(b.buf, p[:min(n, room)]...)
	}
	return n, err
}

// foreign tells whether the body cannot be the beginning of a stream of events.
func (b *prefixReader) cannotBeSSE() bool {
	text := bytes.TrimSpace(bytes.TrimPrefix(b.buf, []byte("\xEF\xBB\xBF")))
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		if n := min(len(text), len(field)); string(text[:n]) == field[:n] {
			return false
		}
	}
	return true
}
