package providers

import (
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm"
)

// Feed reads a response that another program receives: its bytes are written to the Feed,
// in pieces cut anywhere, and each event is reported as soon as its bytes are there. A
// Feed is for one response and one goroutine. [NewFeed] makes it; for a response that can
// be read from an io.Reader, [Decode] is enough.
type Feed struct {
	next  func() (feedStep, bool)
	stop  func()
	input feedInput
	watch func(llm.Event)
	acc   llm.Accumulator
	err   error // why the answer ended before its end
	over  bool
}

// feedStep is one step of reading: an event, an error at the end, or the need for more
// bytes.
type feedStep struct {
	event llm.Event
	err   error
	more  bool
}

// NewFeed returns a Feed for a dialect; the provider and the model may be empty. watch, if
// not nil, is called with each event during Write and Close. For a library that returns
// events as JSON texts, write each with a line break after it.
func NewFeed(api, provider, model string, watch func(llm.Event)) (*Feed, error) {
	t, err := targetOf(api, provider, model)
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

// feedInput holds the bytes that were written and not read yet.
type feedInput struct {
	bytes []byte
	ended bool
	wait  func() bool // returns to Write; false: the Feed was closed
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

// Write takes the next bytes of the response and reports its events before it returns. The
// error is that of a response that cannot be read further; bytes after the end of a
// response are ignored.
func (f *Feed) Write(p []byte) (int, error) {
	f.input.bytes = p
	f.run()
	f.input.bytes = nil
	return len(p), f.err
}

// run reads as far as the bytes go.
func (f *Feed) run() {
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

// Response returns what came so far, as [llm.Accumulator].Response does: open blocks are
// marked incomplete.
func (f *Feed) Response() *llm.Response { return f.acc.Response(f.over && f.err == nil) }

// Close ends the response and returns it. For a response that was not at its end the error
// is [llm.ErrTruncated], and the response holds what came. Close a Feed also when you give
// it up.
func (f *Feed) Close() (*llm.Response, error) {
	f.input.ended = true
	f.run()
	f.stop()
	return f.Response(), f.err
}
