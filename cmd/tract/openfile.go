package main

import (
	"context"
	"io"
	"io/fs"
	"os"
)

// openFile opens a file for reading. If the file is a FIFO, waiting for its writer ends with the
// context.
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

// openUnlessDone opens a file, or returns an error if the context ends first.
func openUnlessDone(ctx context.Context, path string) (*os.File, error) {
	f, err := runUntilDone(ctx, func() (*os.File, error) {
		f, err := os.Open(path)
		if err == nil && ctx.Err() != nil {
			return nil, f.Close()
		}
		return f, err
	})
	if ctxErr := ctx.Err(); ctxErr != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ctxErr}
	}
	return f, err
}
