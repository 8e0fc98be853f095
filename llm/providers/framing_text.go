package providers

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/llm"
)

// jsonTexts yields JSON texts that lie one after the other. One that stands alone may
// be the whole response.
func jsonTexts(r *bufio.Reader, alone bool, yield func(frame, error) bool) {
	d := json.NewDecoder(steady{r})
	for n := 0; ; n++ {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			endTexts(d, err, yield)
			return
		}
		if !yield(frame{data: text, whole: alone && n == 0 && !d.More()}, nil) {
			return
		}
	}
}

// elements yields the elements of a JSON array, which are objects.
func elements(r *bufio.Reader, yield func(frame, error) bool) {
	d := json.NewDecoder(steady{r})
	if begin, err := d.Token(); begin != json.Delim('[') {
		endTexts(d, cmp.Or(err, fmt.Errorf("%w: no list of events: %v in it", llm.ErrProtocol, begin)), yield)
		return
	}
	for d.More() {
		var text json.RawMessage
		err := d.Decode(&text)
		if err == nil && text[0] != '{' {
			err = fmt.Errorf("%w: no list of events: %q in it", llm.ErrProtocol, excerpt(text))
		}
		if err != nil {
			endTexts(d, err, yield)
			return
		}
		if !yield(frame{data: text}, nil) {
			return
		}
	}
	if _, err := d.Token(); err != nil {
		endTexts(d, err, yield)
		return
	}
	yield(frame{last: true}, nil)
}

// endTexts yields the error that ended the reading, if it was one. Of a connection that
// broke off it yields the text that is cut: whoever reads that finds out.
func endTexts(d *json.Decoder, err error, yield func(frame, error) bool) {
	switch syntax := (*json.SyntaxError)(nil); {
	case err == io.EOF:
	case errors.Is(err, io.ErrUnexpectedEOF):
		rest, _ := io.ReadAll(d.Buffered())
		if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			yield(frame{data: rest}, nil)
		}
	case errors.As(err, &syntax):
		yield(frame{}, fmt.Errorf("%w: %w", llm.ErrProtocol, err))
	default:
		yield(frame{}, err)
	}
}

// steady is a reader that fails when it gives nothing again and again, where a JSON
// decoder would ask for ever.
type steady struct{ *bufio.Reader }

func (s steady) Read(p []byte) (int, error) {
	if _, err := s.Peek(1); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
