package importers

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Read reads a file in a format, or finds that out by looking, and yields its
// messages in order. name is what errors call it. Errors come after all messages: what is
// no conversation is an *[UnknownError], and a line that cannot be read is a *[LineError].
// A line that is no JSON, or no message, is passed over: each of the first 100 is an error
// of its own.
func Read(name string, r io.Reader, f Format) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l := newLines(name, r)
		v, whole, err := l.first()
		if err == io.EOF {
			err = &UnknownError{name, "it is empty"}
		}
		if err == nil && f == Auto {
			f, err = detectFile(name, v)
		}
		if err != nil && l.passed > 0 {
			err = l.damaged[0]
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		out := &sink{yield: yield}
		switch {
		case f == ClaudeCode:
			err = readClaudeCode(l, v, whole, out)
		default:
			err = readMessages(l, v, whole, f, out)
		}
		bad := l.passedOver()
		if err != nil {
			bad = append(bad, err)
		}
		for _, err := range bad {
			out.fail(err)
		}
	}
}

// sink yields entries until the consumer wants no more.
type sink struct {
	yield   func(Entry, error) bool
	stopped bool // the consumer wants no more
}

func (s *sink) put(e Entry) {
	if !s.stopped {
		s.stopped = !s.yield(e, nil)
	}
}

// fail tells the consumer of an error.
func (s *sink) fail(err error) {
	if !s.stopped {
		s.stopped = !s.yield(Entry{}, err)
	}
}

// first reads the first line that is JSON; whole tells that the file is one JSON text,
// over one line or many. The error is that of the first line when no other tells what the
// file is.
func (l *lines) first() (v rawjson.Value, whole bool, err error) {
	cut := false // the line before this one, or what is over many lines
	for {
		if _, err := l.next(); err != nil {
			return nil, false, err
		}
		l.line = bytes.Clone(l.line) // looking on may read over it
		v, err = l.parse(bytes.TrimSpace(l.line))
		switch {
		case err == nil && cut && len(l.rest) > 0: // it is a line of one text
			return nil, false, l.damaged[0]
		case err == nil:
			return v, l.atEnd(), nil
		case cut || l.passed+1 == mostNamed:
			return nil, false, err
		}
		var syntax *rawjson.SyntaxError
		_ = errors.As(err, &syntax)
		if cut = syntax.Truncated; cut {
			text, err := l.all()
			if err != nil {
				return nil, false, err
			}
			if v, err = rawjson.Parse(text); err == nil {
				return v, true, nil
			}
		}
		l.lose(err)
	}
}

// detectFile returns the format that the first value of a file is in.
func detectFile(name string, v rawjson.Value) (Format, error) {
	for v.Kind() == rawjson.KindArray {
		v = v.At(0)
	}
	if v.Kind() != rawjson.KindObject {
		return Auto, &UnknownError{name, "no conversation in a known format: it begins with " + describe(v)}
	}
	switch {
	case isClaudeCode(v):
		return ClaudeCode, nil
	case v.Get("role").Kind() == rawjson.KindString && v.Get("usage") != nil:
		return Auto, &UnknownError{name, "it is one response of a model, no conversation (tract decode --commit adds one to a branch)"}
	case isBody(v), v.Get("role").Kind() == rawjson.KindString:
		return Auto, nil // each conversation tells its own
	}
	return Auto, &UnknownError{name, "no conversation in a known format: it begins with " + describe(v)}
}

// describe returns what a value is, in few words.
func describe(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.KindAbsent:
		return "nothing"
	case rawjson.KindObject:
		keys := ""
		for key := range v.Members() {
			if len(keys)+len(key) > 60 {
				keys += ", ..."
				break
			}
			if keys != "" {
				keys += ", "
			}
			keys += key
		}
		return "an object of " + keys
	}
	return "a " + v.Kind().String()
}
