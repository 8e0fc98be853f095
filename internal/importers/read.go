package importers

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Read reads a file in a format, which it detects if f is Auto, and yields the messages in order.
// name is the file's name in errors. Errors come after all messages. A file without a conversation
// gives an *[UnknownError]. A line that is not JSON, or not a message, is skipped and gives a
// *[LineError]; after the first 100 of them, one error has the number of the others.
func Read(name string, r io.Reader, f Format) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l := newLines(name, r)
		v, onlyValue, err := l.firstValidValue()
		if err == io.EOF {
			err = &UnknownError{name, "it is empty"}
		}
		if err == nil && f == Auto {
			f, err = detectFileFormat(name, v)
		}
		if err != nil && l.skippedCount > 0 {
			err = l.skippedFirst[0]
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		out := &sink{yield: yield}
		switch {
		case f == ClaudeCode:
			err = readClaudeCode(l, v, onlyValue, out)
		default:
			err = readMessages(l, v, onlyValue, f, out)
		}
		bad := l.skippedErrors()
		if err != nil {
			bad = append(bad, err)
		}
		for _, err := range bad {
			out.yieldError(err)
		}
	}
}

// sink passes entries and errors to the consumer until it stops the iteration.
type sink struct {
	yield   func(Entry, error) bool
	stopped bool // the consumer has stopped the iteration
}

func (s *sink) yieldEntry(e Entry) {
	if !s.stopped {
		s.stopped = !s.yield(e, nil)
	}
}

// yieldError passes an error to the consumer.
func (s *sink) yieldError(err error) {
	if !s.stopped {
		s.stopped = !s.yield(Entry{}, err)
	}
}

// firstValidValue returns the first value in the file, and skips lines before it that are not JSON.
// onlyValue reports that the file is one JSON text, on one line or many.
func (l *lines) firstValidValue() (v rawjson.Value, onlyValue bool, err error) {
	cut := false // the line before this one, or the text over many lines, was cut off
	for {
		if _, err := l.nextRestOrLine(); err != nil {
			return nil, false, err
		}
		l.line = bytes.Clone(l.line) // reading ahead may overwrite the buffer
		v, err = l.parseValueAndKeepRest(bytes.TrimSpace(l.line))
		switch {
		case err == nil && cut && len(l.rest) > 0: // the line is part of a text over many lines
			return nil, false, l.skippedFirst[0]
		case err == nil:
			return v, l.atEnd(), nil
		case cut || l.skippedCount+1 == maxReported:
			return nil, false, err
		}
		var syntax *rawjson.SyntaxError
		_ = errors.As(err, &syntax)
		if cut = syntax.Truncated; cut {
			text, err := l.peekRest()
			if err != nil {
				return nil, false, err
			}
			if v, err = rawjson.Parse(text); err == nil {
				return v, true, nil
			}
		}
		l.recordInvalidJSON(err)
	}
}

// detectFileFormat returns the format of a file, given its first value. Auto means that each
// conversation in the file is detected by itself.
func detectFileFormat(name string, v rawjson.Value) (Format, error) {
	for v.Kind() == rawjson.KindArray {
		v = v.At(0)
	}
	if v.Kind() != rawjson.KindObject {
		return Auto, &UnknownError{name, "no conversation in a known format: it begins with " + describeValue(v)}
	}
	switch {
	case isClaudeCode(v):
		return ClaudeCode, nil
	case v.Get("role").Kind() == rawjson.KindString && v.Get("usage") != nil:
		return Auto, &UnknownError{name, "it is one response of a model, no conversation (tract decode --commit adds one to a branch)"}
	case isBody(v), v.Get("role").Kind() == rawjson.KindString:
		return Auto, nil // each conversation is detected by itself
	}
	return Auto, &UnknownError{name, "no conversation in a known format: it begins with " + describeValue(v)}
}

// describeValue describes a value in a few words, for an error.
func describeValue(v rawjson.Value) string {
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
