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
	line []byte // with its end

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
	values []heldValue
}

// heldValue is a line that was read as JSON already.
type heldValue struct {
	n     int
	value rawjson.Value
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, src: r, buf: make([]byte, 0, firstPiece)}
}

// next is the next line that is not empty, without its end; io.EOF after the
// last. It is valid until the next call, or for good once lines are kept.
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
	l.held = held{on: true, before: l.n, from: l.at}
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
	l.n, h.on = h.before, false
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
	for l.at == len(l.buf) {
		if err := l.fill(); err != nil {
			return err == io.EOF
		}
	}
	return false
}

// value is the next line as JSON.
func (l *lines) value() (rawjson.Value, error) {
	line, err := l.next()
	if err != nil {
		return nil, err
	}
	return l.parse(line)
}

// parse is what the last line is as JSON.
func (l *lines) parse(line []byte) (rawjson.Value, error) {
	if v := l.held.values; len(v) > 0 && v[0].n == l.n && !l.held.on {
		l.held.values = v[1:]
		return v[0].value, nil
	}
	v, err := rawjson.Parse(line)
	if err != nil {
		return nil, l.wrong(err)
	}
	if l.held.on && l.keeps {
		l.held.values = append(l.held.values, heldValue{l.n, v})
	}
	return v, nil
}

// all is the rest of the file from the last line on.
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
	return rest.Bytes(), nil
}

// wrong is an error about the line read last.
func (l *lines) wrong(err error) error {
	e := &LineError{File: l.file, Line: l.n, Cause: err}
	if _, syntax := errors.AsType[*rawjson.SyntaxError](err); syntax {
		e.Last = l.atEnd()
	}
	return e
}
