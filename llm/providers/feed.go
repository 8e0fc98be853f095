package providers

import (
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm"
)

// How a Feed turns writes into reads.
//
// The dialects read a response from an io.Reader, but the user of a Feed writes it. So
// NewFeed runs the decoder as an iterator under iter.Pull. When the decoder has read all
// bytes that were written, feedInput.Read yields a step with more set, which returns control
// to Write. The next Write continues the decoder at the same place. After Close, Read
// returns io.EOF.

// Feed decodes a response that another program receives. Write its bytes to the Feed, in
// pieces of any size; the Feed reports each event as soon as its bytes are there. A Feed is
// for one response and for one goroutine. [NewFeed] returns one. If you can read the response
// from an io.Reader, use [Decode] instead.
type Feed struct {
	next  func() (feedStep, bool)
	stop  func()
	input feedInput
	watch func(llm.Event)
	acc   llm.Accumulator
	err   error // why the response cannot be read further
	over  bool  // the decoder has ended
}

// feedStep is one step of the decoder: an event, the final error, or the need for more bytes.
type feedStep struct {
	event llm.Event
	err   error
	more  bool
}

// NewFeed returns a Feed for a dialect; the provider and the model may be empty. Write and
// Close call watch, if it is not nil, with each event. If a library gives you the events as
// JSON texts, write a line break after each.
func NewFeed(api, provider, model string, watch func(llm.Event)) (*Feed, error) {
	t, err := targetOrGeneric(api, provider, model)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	f := &Feed{watch: watch}
	f.next, f.stop = iter.Pull(func(yield func(feedStep) bool) {
		f.input.wait = func() bool { return yield(feedStep{more: true}) }
		for e, err := range t.Decode(&f.input, llm.FramingStream) {
			if !yield(feedStep{event: e, err: err}) || err != nil {
				return
			}
		}
	})
	return f, nil
}

// feedInput is the reader of the decoder. It holds the bytes that were written and not read
// yet.
type feedInput struct {
	bytes []byte
	ended bool
	wait  func() bool // returns control to Write until there are more bytes; false: the Feed was closed
}

func (p *feedInput) Read(to []byte) (int, error) {
	for len(p.bytes) == 0 {
		if p.ended || !p.wait() {
			return 0, io.EOF
		}
	}
	n := copy(to, p.bytes)
	p.bytes = p.bytes[n:]
	return n, nil
}

// Write decodes the next bytes of the response, and reports their events before it returns. It
// returns an error if the response cannot be read further. It ignores bytes after the end of
// the response.
func (f *Feed) Write(p []byte) (int, error) {
	f.input.bytes = p
	f.decodeAvailable()
	f.input.bytes = nil
	return len(p), f.err
}

// decodeAvailable decodes the events in the written bytes, and returns when these bytes are used up
// or the response ends.
func (f *Feed) decodeAvailable() {
	for !f.over {
		step, more := f.next()
		switch {
		case !more:
			f.over = true
		case step.more:
			return
		case step.err != nil:
			f.err, f.over = step.err, true
		default:
			if f.watch != nil {
				f.watch(step.event)
			}
			f.acc.Add(step.event)
		}
	}
}

// Response returns the response so far, as [llm.Accumulator].Response does: open blocks are
// marked as incomplete.
func (f *Feed) Response() *llm.Response { return f.acc.Response(f.over && f.err == nil) }

// Close ends the response and returns it. If the response is not complete, the error is
// [llm.ErrTruncated], and the response has the blocks so far. Always close a Feed, even if you
// do not need the response.
func (f *Feed) Close() (*llm.Response, error) {
	f.input.ended = true
	f.decodeAvailable()
	f.stop()
	return f.Response(), f.err
}
