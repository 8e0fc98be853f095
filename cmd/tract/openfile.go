package main

import (
	"context"
	"io"
	"io/fs"
	"os"
)

// openFile opens a file to be read, and tells what it is. Of a FIFO, the system waits
// for a program that writes into it, and for what that writes: the person can end both.
func openFile(ctx context.Context, path string) (io.ReadCloser, fs.FileInfo, error) {
	plain := true
	if info, err := os.Stat(path); err == nil {
		plain = info.Mode().IsRegular()
	}
	f, err := (*os.File)(nil), error(nil)
	if plain {
		f, err = os.Open(path)
	} else {
		f, err = openUnlessDone(ctx, path)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		_ = f.Close()
		return nil, nil, err
	case plain:
		return f, info, nil
	}
	return &ctxFile{ctxReader{ctx, f}, f}, info, nil
}

// ctxFile is a file whose reads end when a context does.
type ctxFile struct {
	ctxReader
	io.Closer
}

// openUnlessDone opens a file, unless the context ends before that.
func openUnlessDone(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := os.Open(path)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done(): // nobody waits for it any more
			if err == nil {
				_ = f.Close()
			}
		}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, &fs.PathError{Op: "open", Path: path, Err: ctx.Err()}
	}
}
