package main

import (
	"context"
	"io"
)

// stdin is what comes in, until the person ends the command: one that waits for words
// can be interrupted.
func (a *app) stdin(ctx context.Context) io.Reader { return &ctxReader{ctx, a.in} }

// ctxReader is a reader whose reads end when a context does. What is read after that is
// lost.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // a Read has none
	in  io.Reader
}

// Read reads into memory of its own, since it may come back when nobody waits.
func (w *ctxReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	type came struct {
		n   int
		err error
	}
	own, done := make([]byte, len(p)), make(chan came, 1)
	go func() {
		n, err := w.in.Read(own)
		done <- came{n, err}
	}()
	select {
	case c := <-done:
		return copy(p, own[:c.n]), c.err
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	}
}
