package providers

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// decode reads a response body and yields what it says.
func (t target) decode(body io.Reader, f llm.Framing) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		o := &output{target: t, yield: yield}
		r := t.dialect.read(o)
		said, err := feed(r, o, frames(body, f))
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
			return false, failed(o.provider, f)
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
