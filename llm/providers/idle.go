package providers

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tract-vcs/tract/llm"
)

// idleTimer cancels a request whose server sends nothing for too long.
type idleTimer struct {
	end context.CancelCauseFunc
	// cause returns why the client canceled the request; nil if it did not. If the parent
	// context ended, cause returns the error of that context, not its cause.
	cause func() error
	host  string
	timer *time.Timer // nil: no limit was set
}

// newIdleTimer returns a timer for one request, and the context with which the request must be
// made. host is named in the error of a timeout.
func newIdleTimer(parent context.Context, host string) (*idleTimer, context.Context) {
	ctx, end := context.WithCancelCause(parent)
	return &idleTimer{end: end, host: host, cause: func() error {
		if err := parent.Err(); err != nil {
			return err
		}
		return context.Cause(ctx)
	}}, ctx
}

// setLimit starts the timer again: it cancels the request after d. If d is not positive, it
// only stops the timer.
func (w *idleTimer) setLimit(d time.Duration) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if d > 0 {
		w.timer = time.AfterFunc(d, func() { w.end(fmt.Errorf("%w: %s said nothing for %s", llm.ErrTimeout, w.host, d)) })
	}
}

// stopAndCancel stops the timer and cancels the request.
func (w *idleTimer) stopAndCancel() {
	w.setLimit(0)
	w.end(context.Canceled)
}

// timedBody is a response body whose reads time out.
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
	b.watch.stopAndCancel()
	return b.body.Close()
}
