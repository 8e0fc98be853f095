package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/llm/rawjson"
)

// maxLine is how many bytes a line, or a file that is one JSON text, may have.
const maxLine = 64 << 20

var errTooLong = fmt.Errorf("more than %d MiB in one piece", maxLine>>20)

// lines reads a file line by line.
type lines struct {
	file string
	r    *bufio.Reader
	n    int    // of the line read last, from 1
	line []byte // with its end
	buf  []byte // that a line lies in which is longer than the reader's
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, r: bufio.NewReaderSize(r, 64<<10)}
}

// next is the next line that is not empty, without its end; io.EOF after the
// last. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		if err := l.read(); err != nil {
			return nil, err
		}
		if line := bytes.TrimSpace(l.line); len(line) > 0 {
			return line, nil
		}
	}
}

// read reads a line.
func (l *lines) read() (err error) {
	l.n++
	l.line, err = l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		for l.buf = l.buf[:0]; err == bufio.ErrBufferFull; {
			if l.buf = append(l.buf, l.line...); len(l.buf) > maxLine {
				return l.wrong(errTooLong)
			}
			l.line, err = l.r.ReadSlice('\n')
		}
		l.buf = append(l.buf, l.line...)
		l.line = l.buf
	}
	switch {
	case len(l.line) > maxLine:
		return l.wrong(errTooLong)
	case err == io.EOF && len(l.line) > 0:
		return nil
	case err == io.EOF || err == nil:
		return err
	}
	return l.wrong(err)
}

// value is the next line as JSON.
func (l *lines) value() (rawjson.Value, error) {
	line, err := l.next()
	if err != nil {
		return nil, err
	}
	v, err := rawjson.Parse(line)
	if err != nil {
		return nil, l.wrong(err)
	}
	return v, nil
}

// all is the rest of the file from the last line on.
func (l *lines) all() ([]byte, error) {
	var rest bytes.Buffer
	rest.Write(l.line)
	n, err := rest.ReadFrom(io.LimitReader(l.r, int64(maxLine+1-rest.Len())))
	if err == nil && n > 0 && rest.Len() > maxLine {
		err = errTooLong
	}
	if err != nil {
		return nil, l.wrong(err)
	}
	return rest.Bytes(), nil
}

// wrong is an error about the line read last.
func (l *lines) wrong(err error) error { return l.wrongAt(l.n, true, err) }

// wrongAt is an error about a line, which may be the last of those that were read.
func (l *lines) wrongAt(n int, last bool, err error) error {
	e := &LineError{File: l.file, Line: n, Cause: err}
	if _, syntax := errors.AsType[*rawjson.SyntaxError](err); syntax && last {
		_, end := l.r.Peek(1)
		e.Last = end == io.EOF
	}
	return e
}
