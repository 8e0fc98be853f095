package framing

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// readTexts yields consecutive JSON texts. With mayBeWhole, a text that nothing follows is the
// whole response.
func readTexts(r *bufio.Reader, mayBeWhole bool, yield func(Frame, error) bool) {
	d := json.NewDecoder(progressReader{r})
	for n := 0; ; n++ {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			yieldRestOrError(d, err, yield)
			return
		}
		if !yield(Frame{Data: text, Whole: mayBeWhole && n == 0 && !d.More()}, nil) {
			return
		}
	}
}

// readArray yields the elements of a JSON array, which are objects.
func readArray(r *bufio.Reader, yield func(Frame, error) bool) {
	d := json.NewDecoder(progressReader{r})
	if begin, err := d.Token(); begin != json.Delim('[') {
		yieldRestOrError(d, cmp.Or(err, fmt.Errorf("%w: no list of events: %v in it", llm.ErrProtocol, begin)), yield)
		return
	}
	for d.More() {
		var text json.RawMessage
		err := d.Decode(&text)
		if err == nil && text[0] != '{' {
			err = fmt.Errorf("%w: no list of events: %q in it", llm.ErrProtocol, rawjson.Excerpt(text))
		}
		if err != nil {
			yieldRestOrError(d, err, yield)
			return
		}
		if !yield(Frame{Data: text}, nil) {
			return
		}
	}
	if _, err := d.Token(); err != nil {
		yieldRestOrError(d, err, yield)
		return
	}
	yield(Frame{Last: true}, nil)
}

// yieldRestOrError yields the error that ended the reading, if it was one. Of a connection that
// broke off it yields the truncated text: parsing it gives the error.
func yieldRestOrError(d *json.Decoder, err error, yield func(Frame, error) bool) {
	switch syntax := (*json.SyntaxError)(nil); {
	case err == io.EOF:
	case errors.Is(err, io.ErrUnexpectedEOF):
		rest, _ := io.ReadAll(d.Buffered())
		if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			yield(Frame{Data: rest}, nil)
		}
	case errors.As(err, &syntax):
		yield(Frame{}, fmt.Errorf("%w: %w", llm.ErrProtocol, err))
	default:
		yield(Frame{}, err)
	}
}

// progressReader fails when the reader returns nothing again and again, where a JSON
// decoder would ask forever.
type progressReader struct{ *bufio.Reader }

func (s progressReader) Read(p []byte) (int, error) {
	if _, err := s.Peek(1); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
