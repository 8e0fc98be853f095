package wire

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/framing"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// How a response is decoded.
//
// Package framing cuts a body into frames: the events of a stream, or one whole body.
// readFrames parses each frame and passes it to the ResponseReader of the dialect, which
// writes blocks to a BlockWriter; the BlockWriter yields the events to the consumer. At the
// end, the reader's Finish reports whether the response is complete. If it is, an error after
// the end is ignored, unless it is an error of the provider or of the protocol. If it is not,
// the error is ErrTruncated unless there is another one.

// Decode reads a response body and yields its events. If the response breaks, the last element
// is the error.
func (t Target) Decode(body io.Reader, f llm.Framing) iter.Seq2[llm.Event, error] {
	return t.decode(func(r ResponseReader, o *BlockWriter) (bool, error) {
		return readFrames(r, o, framing.Read(body, f))
	})
}

// DecodeAssistant reads a message of the model in a request. The caller passes it in the form
// of a response body.
func (t Target) DecodeAssistant(body rawjson.Value) ([]content.Block, error) {
	r, err := llm.Collect(t.decode(func(r ResponseReader, _ *BlockWriter) (bool, error) {
		return false, r.ReadBody(body)
	}), nil)
	if r == nil || err != nil && !errors.Is(err, llm.ErrTruncated) {
		return nil, err
	}
	return r.Blocks, nil
}

// decode yields the events of one response. read passes the response to the dialect's reader,
// and reports whether the framing marked the end of the response.
func (t Target) decode(read func(ResponseReader, *BlockWriter) (sawEnd bool, err error)) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		o := &BlockWriter{Target: t, yield: yield}
		r := t.Dialect.NewReader(o)
		sawEnd, err := read(r, o)
		whole := r.Finish(sawEnd)
		if o.err != nil {
			err = o.err
		}
		switch {
		case whole && !errors.As(err, new(*llm.APIError)) && !errors.Is(err, llm.ErrProtocol):
			err = nil // the response is complete, so a later error does not matter
		case err == nil:
			err = fmt.Errorf("%w: %w", llm.ErrTruncated, io.ErrUnexpectedEOF)
		}
		o.close(err)
	}
}

// readFrames passes the frames to the reader. sawEnd reports whether the framing marked the end
// of the stream; err is the error that ended the response early.
func readFrames(r ResponseReader, o *BlockWriter, list iter.Seq2[framing.Frame, error]) (sawEnd bool, err error) {
	var cut error // syntax error of the previous frame; accepted if that frame is the last and truncated
	for f, err := range list {
		switch {
		case err != nil:
			return false, streamError(err)
		case cut != nil:
			return false, cut
		case f.Last:
			return true, nil
		case f.Failed:
			return false, errorOfFailedFrame(o.Provider, f)
		}
		v, err := rawjson.Parse(f.Data)
		if err != nil {
			cut = framing.SyntaxError(err, f.Data)
			continue
		}
		if f.Whole {
			err = r.ReadBody(v)
		} else {
			err = r.ReadEvent(f.Event, v)
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil || o.stopped || o.err != nil {
			return false, err
		}
	}
	var syntax *rawjson.SyntaxError
	if errors.As(cut, &syntax) && !syntax.Truncated {
		return false, cut
	}
	return false, nil
}
