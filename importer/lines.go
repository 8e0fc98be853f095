package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tract-vcs/tract/llm/rawjson"
)

// maxLine is how many bytes a line, or a file that is one JSON text, may have.
const maxLine = 64 << 20

var errTooLong = fmt.Errorf("more than %d MiB in one piece", maxLine>>20)

// How much memory is taken for lines: at first, and at most for those that are shorter.
const (
	firstPiece = 128 << 10
	mostPiece  = 1 << 20
)

// noProgress is how often a file may give nothing, and no error.
const noProgress = 100

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

	src   io.Reader
	ended error  // why no more is read
	buf   []byte // what was read
	at    int    // where what was not given yet begins
	keeps bool   // the memory of what was given is not used again
	held  held
}

// held is the lines from one on, to be given again. Those of a file that can be read
// from a place on are not kept in memory, but read again.
type held struct {
	on     bool      // those that are given are held
	before int       // number of the line before them
	again  io.Seeker // the file, if it can; nil: they are kept
	at     int64     // where they begin in it
	pieces [][]byte  // of whole lines
	from   int       // where those begin that lie in no piece
	rest   []byte    // of the line before them
	values []heldValue
}

// heldValue is a line that was read as JSON already.
type heldValue struct {
	n     int
	value rawjson.Value
	rest  []byte
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, src: r, buf: make([]byte, 0, firstPiece)}
}

// next is the next line that is not empty, without its end, or what follows the value
// that was read on the last one; io.EOF after the last. It is valid until the next call, or for good once lines are kept.
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
	for seen := 0; ; {
		if i := bytes.IndexByte(l.buf[l.at+seen:], '\n'); i >= 0 {
			return l.give(seen + i + 1)
		}
		if seen = len(l.buf) - l.at; seen > maxLine {
			return l.wrong(errTooLong)
		}
		switch err := l.fill(); {
		case err == io.EOF && seen > 0:
			return l.give(seen)
		case err == io.EOF:
			return err
		case err != nil:
			return l.wrong(err)
		}
	}
}

// give makes the next n bytes the line.
func (l *lines) give(n int) error {
	if n > maxLine {
		return l.wrong(errTooLong)
	}
	l.line = l.buf[l.at : l.at+n : l.at+n]
	l.at += n
	return nil
}

// fill brings more behind what was not given yet.
func (l *lines) fill() error {
	if h := &l.held; !h.on && len(h.pieces) > 0 { // all of the last one was given
		l.buf, l.at, h.pieces[0] = h.pieces[0], 0, nil
		h.pieces = h.pieces[1:]
		return nil
	}
	if l.ended == nil && len(l.buf) == cap(l.buf) {
		l.makeRoom()
	}
	for range noProgress {
		if l.ended != nil {
			return l.ended
		}
		n, err := l.src.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf, l.ended = l.buf[:len(l.buf)+n], err
		if n > 0 {
			return nil
		}
	}
	l.ended = io.ErrNoProgress
	return l.ended
}

// makeRoom makes room behind what was not given yet.
func (l *lines) makeRoom() {
	rest, size := l.buf[l.at:], cap(l.buf)
	if !l.keeps && len(rest) <= size/2 {
		l.buf, l.at = l.buf[:copy(l.buf[:size], rest)], 0
		return
	}
	if len(rest) > size/2 || size < mostPiece {
		size = max(2*size, firstPiece)
	}
	if h := &l.held; h.on && l.keeps {
		if l.at > h.from {
			h.pieces = append(h.pieces, l.buf[h.from:l.at])
		}
		h.from = 0
	}
	l.buf, l.at = append(make([]byte, 0, size), rest...), 0
}

// hold holds the lines that are given from now on.
func (l *lines) hold() {
	l.held = held{on: true, before: l.n, from: l.at, rest: bytes.Clone(l.rest)}
	if s, ok := l.src.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			l.held.again, l.held.at = s, at-int64(len(l.buf)-l.at)
			return
		}
	}
	l.keeps = true
}

// rewind gives the lines again that are held, and then the others.
func (l *lines) rewind() {
	h := &l.held
	l.n, l.rest, h.on = h.before, h.rest, false
	if h.again != nil {
		_, err := h.again.Seek(h.at, io.SeekStart)
		l.buf, l.at, l.ended = l.buf[:0], 0, err
		return
	}
	if len(h.pieces) == 0 {
		l.at = h.from
		return
	}
	h.pieces = append(h.pieces, l.buf[h.from:])
	l.buf, l.at = nil, 0
}

// atEnd tells whether nothing follows.
func (l *lines) atEnd() bool {
	if len(l.rest) > 0 {
		return false
	}
	for l.at == len(l.buf) {
		if err := l.fill(); err != nil {
			return err == io.EOF
		}
	}
	return false
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
	if v := l.held.values; len(v) > 0 && v[0].n == l.n && !l.held.on {
		l.held.values = v[1:]
		l.rest = v[0].rest
		return v[0].value, nil
	}
	v, rest, err := rawjson.ParseFirst(line)
	if k := v.Kind(); len(rest) > 0 && k != rawjson.KindObject && k != rawjson.KindArray {
		_, err = rawjson.Parse(line)
	}
	if err != nil {
		return nil, l.wrong(err)
	}
	l.rest = rest
	if l.held.on && l.keeps {
		l.held.values = append(l.held.values, heldValue{l.n, v, rest})
	}
	return v, nil
}

// mostNamed is how many lines that are passed over are named.
const mostNamed = 100

// passOver keeps what is wrong with a line, and reading goes on.
func (l *lines) passOver(err error) {
	l.passed++
	if l.passed <= mostNamed {
		l.damaged = append(l.damaged, err)
	}
}

// passedOver is the errors of all lines that were passed over.
func (l *lines) passedOver() []error {
	if more := l.passed - len(l.damaged); more > 0 {
		return append(l.damaged, fmt.Errorf("%s: %d more lines are damaged", l.file, more))
	}
	return l.damaged
}

// all is the rest of the file from the last line on. What follows the line can be read
// line by line all the same.
func (l *lines) all() ([]byte, error) {
	rest := bytes.NewBuffer(slices.Concat(l.line, l.buf[l.at:]))
	err := l.ended
	if err == nil {
		_, err = rest.ReadFrom(io.LimitReader(l.src, int64(max(maxLine+1-rest.Len(), 0))))
	}
	if (err == nil || err == io.EOF) && rest.Len() > maxLine && rest.Len() > len(l.line) {
		err = errTooLong
	}
	if err != nil && err != io.EOF {
		return nil, l.wrong(err)
	}
	l.buf, l.at = rest.Bytes(), len(l.line)
	return l.buf, nil
}

// wrong is an error about the line read last.
func (l *lines) wrong(err error) error {
	e := &LineError{File: l.file, Line: l.n, Cause: err}
	if errors.As(err, new(*rawjson.SyntaxError)) {
		e.Last = l.atEnd()
	}
	return e
}
