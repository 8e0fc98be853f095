package providers

import (
	"fmt"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm"
)

// Feed reads an answer that somebody else receives: it is written to, in pieces cut
// anywhere, and tells of each thought, word and block as soon as its bytes are
// there. It is for one answer and one goroutine. [NewFeed] makes it; an answer that
// can be read from an io.Reader needs only [Decode].
type Feed struct {
	next  func() (feedStep, bool)
	stop  func()
	input feedInput
	watch func(llm.Event)
	acc   llm.Accumulator
	err   error // why the answer ended before its end
	over  bool
}

// fed is one step of reading: an event, an error at the end, or that more is needed.
type feedStep struct {
	event llm.Event
	err   error
	more  bool
}

// NewFeed begins an answer in a dialect; the provider and the model may be empty.
// watch, if not nil, is given each event while Write or Close runs. For a library
// that gives events as JSON texts, write each with a line break after it.
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

// piece is the bytes that were written and not read yet.
type feedInput struct {
	bytes []byte
	ended bool
	wait  func() bool // hands over to who writes; false: nobody does any more
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

// Write takes the next bytes of the answer. What the events say is told before it
// returns. The error is that of an answer which cannot be read on; what comes after
// the end of an answer is not looked at.
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

// Response is what has come so far, as [llm.Accumulator].Response has it: blocks
// that are open are marked incomplete.
func (f *Feed) Response() *llm.Response { return f.acc.Response(f.over && f.err == nil) }

// Close ends the answer and gives it. One that had not said that it ends has an
// error that is [llm.ErrTruncated], and the response holds what came. A Feed that
// was given up is closed too.
func (f *Feed) Close() (*llm.Response, error) {
	f.input.ended = true
	f.run()
	f.stop()
	return f.Response(), f.err
}
