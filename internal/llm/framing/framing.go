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

// How a body is cut into frames.
//
// A body is one JSON text, or a stream whose events are JSON texts in server-sent
// events (sse.go), in an array or one after the other (json.go), or in Amazon's binary
// messages (aws.go). The framing is detected from the first two bytes that are not white
// space. A frame is yielded as soon as its last byte was read, without waiting for more;
// a JSON text that may stand alone is the exception: whether it is the whole response is
// known only when the next byte, or the end, was read. A truncated last frame is yielded
// as it is, and parsing it tells that it is truncated.

// maxBody is how many bytes a response may have.
const maxBody = 64 << 20

// Frame is one JSON text of a response.
type Frame struct {
	Event  string
	Data   []byte // valid until the next frame
	Whole  bool   // it is the whole response, not an event of a stream
	Last   bool   // it says that the stream ends
	Failed bool   // it says that the response went wrong; event is how
}

// Read yields the frames of a body, each as soon as it is whole. The error, which is the
// last element, is that of the reader, or says that the body is too long, malformed, or in
// no known framing.
func Read(r io.Reader, f llm.Framing) iter.Seq2[Frame, error] { return read(r, f, maxBody) }

func read(r io.Reader, f llm.Framing, limit int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		body := &prefixReader{r: r}
		r := bufio.NewReaderSize(&limitedReader{r: body, remaining: limit}, 512)
		if err := skipToFirstByte(r); err != nil {
			if err != io.EOF {
				yield(Frame{}, err)
			}
			return
		}
		mayBeWhole := f == llm.FramingAuto
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
			readTexts(r, mayBeWhole, yield)
		case llm.FramingAWS:
			readAWS(r, yield)
		default:
			readSSE(r, body, yield)
		}
	}
}

// detect returns the framing of a stream by its first two bytes. A message of Amazon's
// begins with its length in four bytes, and the first message is short enough for two
// zeros.
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

// skipToFirstByte reads up to the first byte that is not white space or part of a byte
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

// endOfStream is what OpenAI, and servers like it, end a stream with. It is not JSON.
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

// limitedReader reads up to a limit; more is an error, not the end.
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

// SyntaxError returns the error for a text that should be JSON.
func SyntaxError(err error, text []byte) error {
	return fmt.Errorf("%w: %w in %q", llm.ErrProtocol, err, rawjson.Excerpt(text))
}

// prefixReader keeps the first bytes of a body.
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

// cannotBeSSE reports whether the body cannot be the beginning of a stream of events.
func (b *prefixReader) cannotBeSSE() bool {
	text := bytes.TrimSpace(bytes.TrimPrefix(b.buf, []byte("\xEF\xBB\xBF")))
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		if n := min(len(text), len(field)); string(text[:n]) == field[:n] {
			return false
		}
	}
	return true
}
