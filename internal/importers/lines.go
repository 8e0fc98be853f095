package importers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// maxLine is how many bytes a line, or a file that is one JSON text, may have.
const maxLine = 64 << 20

var errTooLong = fmt.Errorf("more than %d MiB in one piece", maxLine>>20)

// lines reads a file line by line.
type lines struct {
	file string
	n    int    // of the line read last, from 1
	nth  int    // of the value read last on it, from 0
	line []byte // with its end
	rest []byte // what follows that value on the line

	damaged []error // lines that were passed over, the first of them
	passed  int     // how many there were
	lost    int     // of them, those of which nothing was read

	src   *bufio.Reader
	buf   []byte // memory for a line
	ended error  // why no more is read
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, src: bufio.NewReaderSize(r, 64<<10)}
}

// next is the next line that is not empty, without its end, or what follows the value
// that was read on the last one; io.EOF after the last. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	if len(l.rest) > 0 {
		l.line, l.rest = l.rest, nil
		l.nth++
		return l.line, nil
	}
	l.nth = 0
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
func (l *lines) read() error {
	l.n++
	if l.ended == nil {
		l.ended = l.fill()
	}
	if l.ended == nil {
		l.line = l.buf
	}
	return l.ended
}

// fill reads the next line of the file.
func (l *lines) fill() error {
	l.buf = l.buf[:0]
	for {
		part, err := l.src.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > maxLine:
			return l.wrong(errTooLong)
		case err == bufio.ErrBufferFull:
		case err == nil, err == io.EOF && len(l.buf) > 0:
			return nil
		case err == io.EOF:
			return err
		default:
			return l.wrong(err)
		}
	}
}

// atEnd reports whether nothing follows.
func (l *lines) atEnd() bool {
	if len(l.rest) > 0 {
		return false
	}
	_, err := l.src.Peek(1)
	return err == io.EOF
}

// value is the next JSON value: of a line, or one more of the last one, as two lines are
// one when the end of the first was lost. A line that is no JSON is passed over.
func (l *lines) value() (rawjson.Value, error) {
	for {
		line, err := l.next()
		if err != nil {
			return nil, err
		}
		v, err := l.parse(line)
		if err == nil {
			return v, nil
		}
		l.lose(err)
	}
}

// lose passes over a line that is no JSON.
func (l *lines) lose(err error) {
	if l.passOver(err); l.nth == 0 {
		l.lost++
	}
}

// parse is the first value of the last line, or of the rest of it. Others follow an object
// or an array only.
func (l *lines) parse(line []byte) (rawjson.Value, error) {
	v, rest, err := rawjson.ParseFirst(line)
	if k := v.Kind(); len(rest) > 0 && k != rawjson.KindObject && k != rawjson.KindArray {
		_, err = rawjson.Parse(line)
	}
	if err != nil {
		return nil, l.wrong(err)
	}
	l.rest = rest
	return v, nil
}

// mostNamed is how many lines that are passed over are named.
const mostNamed = 100

// passOver keeps what is wrong with a line, a *[LineError], and reading goes on.
func (l *lines) passOver(err error) {
	l.passed++
	if l.passed <= mostNamed {
		l.damaged = append(l.damaged, err)
	}
}

// lineOf returns the line that an error is about.
func lineOf(err error) (line int) {
	if e := (*LineError)(nil); errors.As(err, &e) {
		line = e.Line
	}
	return line
}

// passedOver returns the errors of all lines that were passed over, by line: reading ahead
// finds some of them early.
func (l *lines) passedOver() []error {
	slices.SortStableFunc(l.damaged, func(a, b error) int { return lineOf(a) - lineOf(b) })
	if more := l.passed - len(l.damaged); more > 0 {
		return append(l.damaged, fmt.Errorf("%s: %d more lines are damaged", l.file, more))
	}
	return l.damaged
}

// all is the rest of the file from the last line on. What follows the line can be read
// line by line all the same.
func (l *lines) all() ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(l.src, int64(max(maxLine+1-len(l.line), 0))))
	l.src = bufio.NewReader(io.MultiReader(bytes.NewReader(rest), l.src))
	if len(rest) > 0 && len(l.line)+len(rest) > maxLine {
		err = errTooLong
	}
	if err != nil {
		return nil, l.wrong(err)
	}
	return slices.Concat(l.line, rest), nil
}

// wrong is an error about the line read last.
func (l *lines) wrong(err error) error {
	e := &LineError{File: l.file, Line: l.n, Cause: err}
	if errors.As(err, new(*rawjson.SyntaxError)) {
		e.Last = l.atEnd()
	}
	return e
}
