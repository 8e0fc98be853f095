package main

import (
	"context"
	"io"
)

// runUntilDone returns the result of f, or an error if the context ends first.
func runUntilDone[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// stdin returns a reader of stdin that ends with the context.
func (a *app) stdin(ctx context.Context) io.Reader { return &ctxReader{ctx, a.in} }

// ctxReader is a reader whose reads end when a context does. Later input is lost.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // a Read has none
	in  io.Reader
}

// Read uses a buffer of its own, since the read may finish after the context ends.
func (w *ctxReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	own := make([]byte, len(p))
	n, err := runUntilDone(w.ctx, func() (int, error) { return w.in.Read(own) })
	return copy(p, own[:n]), err
}
