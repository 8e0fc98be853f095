package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// decode reads a response body and yields what it says.
func (t target) decode(body io.Reader, f Framing) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		o := &output{target: t, yield: yield}
		seen := &beginning{r: body}
		r := t.dialect.read(o)
		said, err := feed(r, o, frames(seen, f))
		whole := r.end(said)
		switch {
		case whole && !errors.As(err, new(*llm.APIError)) && !errors.Is(err, llm.ErrProtocol):
			err = nil // the answer is there, whatever came after its end
		case err == nil:
			err = fmt.Errorf("%w: %w", llm.ErrTruncated, io.ErrUnexpectedEOF)
		}
		o.close(err)
	}
}

// feed gives the frames to the reader. said is whether the stream said that it
// ends; the error is what broke the response.
func feed(r reader, o *output, list iter.Seq2[frame, error]) (said bool, err error) {
	var cut error // the frame before was no JSON: fine if it was the last, cut short
	for f, err := range list {
		switch {
		case err != nil:
			return false, broken(err)
		case cut != nil:
			return false, cut
		case f.last:
			return true, nil
		case f.failed:
			return false, failed(o.profile.Name, f)
		}
		v, err := rawjson.Parse(f.data)
		if err != nil {
			cut = notJSON(err, f.data)
			continue
		}
		if f.whole {
			err = r.whole(v)
		} else {
			err = r.event(f.event, v)
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil || o.left {
			return false, err
		}
	}
	var syntax *rawjson.SyntaxError
	if errors.As(cut, &syntax) && !syntax.Truncated {
		return false, cut
	}
	return false, nil
}

// failed is the error that a framing has a form of its own for.
func failed(provider string, f frame) *llm.APIError {
	v, err := rawjson.Parse(f.data)
	if err != nil {
		v = rawjson.AppendString(nil, string(f.data))
	}
	e := apiError(provider, v)
	e.Type = orElse(f.event, e.Type)
	return e
}

// broken is the error of a body that could not be read to its end.
func broken(err error) error {
	for _, plain := range []error{context.Canceled, context.DeadlineExceeded, llm.ErrTimeout, llm.ErrTooLong, llm.ErrProtocol} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", llm.ErrTruncated, err)
}

// notJSON is the error for a text that should be JSON.
func notJSON(err error, text []byte) error {
	return fmt.Errorf("%w: %w in %q", llm.ErrProtocol, err, excerpt(text))
}

// maxExcerpt is how many bytes of an answer that cannot be read are shown.
const maxExcerpt = 120

// excerpt is the beginning of a text, not cut inside a character.
func excerpt(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if len(text) <= maxExcerpt {
		return text
	}
	n := maxExcerpt
	for n > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return append(text[:n:n], "..."...)
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

// apiError reads an error that a provider sent: an object with a member error, or
// what such a member holds. What is not there stays empty.
func apiError(provider string, v rawjson.Value) *llm.APIError {
	if v.Kind() == rawjson.KindArray {
		v = v.At(0)
	}
	if v.Get("error") != nil {
		v = v.Get("error")
	}
	e := &llm.APIError{Provider: provider, Raw: clone(v)}
	if v.Kind() != rawjson.KindObject {
		e.Message = plain(v)
		return e
	}
	for _, key := range []string{"type", "status", "code", "__type"} {
		if e.Type == "" {
			e.Type = plain(v.Get(key))
		}
	}
	for _, key := range []string{"message", "Message", "detail", "error_description"} {
		if e.Message == "" {
			e.Message = plain(v.Get(key))
		}
	}
	e.Param = plain(v.Get("param"))
	e.RetryAfter = retryDelay(v.Get("details"))
	return e
}
