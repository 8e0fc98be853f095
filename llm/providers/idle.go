package providers

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tract-vcs/tract/llm"
)

// idleTimer ends a request whose server is silent for too long.
type idleTimer struct {
	end context.CancelCauseFunc
	// cause is why the request was ended from this side; nil when it was not. A
	// caller that went away counts as that, whatever the cause it gave.
	cause func() error
	host  string
	timer *time.Timer // nil: nothing is waited for
}

// newIdleTimer returns a timer for a request, which has to be made with the returned
// context.
func newIdleTimer(caller context.Context, host string) (*idleTimer, context.Context) {
	ctx, end := context.WithCancelCause(caller)
	return &idleTimer{end: end, host: host, cause: func() error {
		if err := caller.Err(); err != nil {
			return err
		}
		return context.Cause(ctx)
	}}, ctx
}

// setLimit sets how long the silence may last from now on; less than 1 is no limit.
func (w *idleTimer) setLimit(d time.Duration) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if d > 0 {
		w.timer = time.AfterFunc(d, func() { w.end(fmt.Errorf("%w: %s said nothing for %s", llm.ErrTimeout, w.host, d)) })
	}
}

// stop ends the request and the timer.
func (w *idleTimer) stop() {
	w.setLimit(0)
	w.end(context.Canceled)
}

// timedBody is a response body whose pauses are limited.
type timedBody struct {
	body  io.ReadCloser
	watch *idleTimer
	idle  time.Duration
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.watch.setLimit(b.idle)
	n, err := b.body.Read(p)
	b.watch.setLimit(0)
	if err != nil && err != io.EOF {
		if cause := b.watch.cause(); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.watch.stop()
	return b.body.Close()
}
