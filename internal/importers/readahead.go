package importers

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// maxBuffered is the largest size in bytes of the lines that are buffered until the format of a
// conversation with a message on each line is known. If it is not known by then, it is OpenAI's.
const maxBuffered = 64 << 20

// numberedValue is a value with its line number.
type numberedValue struct {
	value rawjson.Value
	line  int
}

// readAhead reads from the first line until the format of a conversation with a message on each
// line is known. It returns the format and the values that it read. err is the reason if no more
// can be read.
func (m *messageReader) readAhead(v rawjson.Value) (l listShape, buffered []numberedValue, err error) {
	buffered = []numberedValue{{bytes.Clone(v), m.l.lineNumber}}
	size := len(v)
	for l.add(v); !l.isItems && m.format != Anthropic && size < m.maxBufferedBytes; l.add(v) {
		if v, err = m.l.nextValidValue(); err != nil {
			return l, buffered, err
		}
		buffered = append(buffered, numberedValue{bytes.Clone(v), m.l.lineNumber})
		size += len(v)
	}
	return l, buffered, nil
}

// readMessagePerLine reads a conversation with a message on each line. Only a later message may
// show the format of the first ones, so these are buffered until then.
func (m *messageReader) readMessagePerLine(v rawjson.Value) error {
	l, buffered, ended := m.readAhead(v)
	_, api := l.dialectFor(m.format)
	var list iter.Seq[json.RawMessage] = func(yield func(json.RawMessage) bool) {
		for _, h := range buffered {
			if m.line = h.line; !yield(json.RawMessage(h.value)) {
				return
			}
		}
		for ended == nil {
			if v, ended = m.l.nextValidValue(); ended != nil {
				return
			}
			if m.line = m.l.lineNumber; !yield(json.RawMessage(v)) {
				return
			}
		}
	}
	m.beginConversation(1)
	empty := true
	for said, err := range providers.DecodeMessages(api, "", "", list) {
		if err != nil {
			m.l.recordSkipped(&LineError{File: m.l.file, Line: m.line, Cause: err})
			continue
		}
		if m.emitMessage(said, api, ""); m.out.stopped {
			return nil
		}
		empty = false
	}
	switch {
	case ended != nil && ended != io.EOF:
		return ended
	case empty && m.l.skippedCount == 0:
		return m.l.lineError(errEmpty)
	}
	return nil
}
