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

// maxLine is the largest size in bytes of a line, or of a file that is one JSON text.
const maxLine = 64 << 20

var errTooLong = fmt.Errorf("more than %d MiB in one piece", maxLine>>20)

// lines reads the JSON values in a file, line by line. It skips and remembers lines that are not
// JSON.
type lines struct {
	file        string
	lineNumber  int    // number of the last line, from 1
	valueOnLine int    // index of the last value on that line, from 0
	line        []byte // the last line, with its end
	rest        []byte // rest of the line after that value

	skippedFirst []error // errors of the first maxReported skipped lines
	skippedCount int     // number of skipped lines
	unreadable   int     // skipped lines of which no value was read

	src   *bufio.Reader
	buf   []byte // buffer for a line
	ended error  // why reading has ended
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, src: bufio.NewReaderSize(r, 64<<10)}
}

// nextRestOrLine returns the rest of the last line after the value that was read, or else the next line
// that is not empty, without its end. After the last line it returns io.EOF. The bytes are valid
// until the next call.
func (l *lines) nextRestOrLine() ([]byte, error) {
	if len(l.rest) > 0 {
		l.line, l.rest = l.rest, nil
		l.valueOnLine++
		return l.line, nil
	}
	l.valueOnLine = 0
	for {
		if err := l.nextRawLine(); err != nil {
			return nil, err
		}
		if line := bytes.TrimSpace(l.line); len(line) > 0 {
			return line, nil
		}
	}
}

// nextRawLine moves to the next line, unless reading has ended.
func (l *lines) nextRawLine() error {
	l.lineNumber++
	if l.ended == nil {
		l.ended = l.readLineIntoBuf()
	}
	if l.ended == nil {
		l.line = l.buf
	}
	return l.ended
}

// readLineIntoBuf reads the next line of the file into buf.
func (l *lines) readLineIntoBuf() error {
	l.buf = l.buf[:0]
	for {
		part, err := l.src.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > maxLine:
			return l.lineError(errTooLong)
		case err == bufio.ErrBufferFull:
		case err == nil, err == io.EOF && len(l.buf) > 0:
			return nil
		case err == io.EOF:
			return err
		default:
			return l.lineError(err)
		}
	}
}

// atEnd reports whether nothing follows the last value.
func (l *lines) atEnd() bool {
	if len(l.rest) > 0 {
		return false
	}
	_, err := l.src.Peek(1)
	return err == io.EOF
}

// nextValidValue returns the next JSON value, of the next line or of the rest of the last one: two
// records may be on one line if the end of the first was lost. It skips a line that is not JSON.
func (l *lines) nextValidValue() (rawjson.Value, error) {
	for {
		line, err := l.nextRestOrLine()
		if err != nil {
			return nil, err
		}
		v, err := l.parseValueAndKeepRest(line)
		if err == nil {
			return v, nil
		}
		l.recordInvalidJSON(err)
	}
}

// recordInvalidJSON skips a line that is not JSON.
func (l *lines) recordInvalidJSON(err error) {
	if l.recordSkipped(err); l.valueOnLine == 0 {
		l.unreadable++
	}
}

// parseValueAndKeepRest parses the first value of a line, and keeps the rest of the line. Only an object
// or an array may be followed by another value.
func (l *lines) parseValueAndKeepRest(line []byte) (rawjson.Value, error) {
	v, rest, err := rawjson.ParseFirst(line)
	if k := v.Kind(); len(rest) > 0 && k != rawjson.KindObject && k != rawjson.KindArray {
		_, err = rawjson.Parse(line)
	}
	if err != nil {
		return nil, l.lineError(err)
	}
	l.rest = rest
	return v, nil
}

// maxReported is the number of skipped lines that are reported one by one.
const maxReported = 100

// recordSkipped records the error of a skipped line, a *[LineError].
func (l *lines) recordSkipped(err error) {
	l.skippedCount++
	if l.skippedCount <= maxReported {
		l.skippedFirst = append(l.skippedFirst, err)
	}
}

// lineOf returns the line number of a *LineError; 0 for any other error.
func lineOf(err error) (line int) {
	if e := (*LineError)(nil); errors.As(err, &e) {
		line = e.Line
	}
	return line
}

// skippedErrors returns the errors of all skipped lines, sorted by line because reading ahead
// finds some of them early.
func (l *lines) skippedErrors() []error {
	slices.SortStableFunc(l.skippedFirst, func(a, b error) int { return lineOf(a) - lineOf(b) })
	if more := l.skippedCount - len(l.skippedFirst); more > 0 {
		return append(l.skippedFirst, fmt.Errorf("%s: %d more lines are damaged", l.file, more))
	}
	return l.skippedFirst
}

// peekRest returns the rest of the file from the last line on. The lines after it can still be
// read one by one.
func (l *lines) peekRest() ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(l.src, int64(max(maxLine+1-len(l.line), 0))))
	l.src = bufio.NewReader(io.MultiReader(bytes.NewReader(rest), l.src))
	if len(rest) > 0 && len(l.line)+len(rest) > maxLine {
		err = errTooLong
	}
	if err != nil {
		return nil, l.lineError(err)
	}
	return slices.Concat(l.line, rest), nil
}

// lineError returns err as a *[LineError] about the last line.
func (l *lines) lineError(err error) error {
	e := &LineError{File: l.file, Line: l.lineNumber, Cause: err}
	if errors.As(err, new(*rawjson.SyntaxError)) {
		e.Last = l.atEnd()
	}
	return e
}
