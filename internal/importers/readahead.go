package importers

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// mostHeld is how many bytes of a conversation with a message on each line are held
// until it is clear what they are. What is not clear by then is OpenAI's.
const mostHeld = 64 << 20

// numbered is a value, and the number of its line.
type numbered struct {
	value rawjson.Value
	line  int
}

// readAhead reads on from the first line until it is clear what a conversation is that has
// a message on each. It returns the values that it read; err is why there are no more.
func (m *messageReader) readAhead(v rawjson.Value) (l listShape, held []numbered, err error) {
	held = []numbered{{bytes.Clone(v), m.l.n}}
	size := len(v)
	for l.add(v); !l.items && m.format != Anthropic && size < m.most; l.add(v) {
		if v, err = m.l.value(); err != nil {
			return l, held, err
		}
		held = append(held, numbered{bytes.Clone(v), m.l.n})
		size += len(v)
	}
	return l, held, nil
}

// oneALine reads a conversation with a message on each line. What the first ones are
// may show in a later one, so they are held until then.
func (m *messageReader) oneALine(v rawjson.Value) error {
	l, held, ended := m.readAhead(v)
	_, api := l.dialect(m.format)
	var list iter.Seq[json.RawMessage] = func(yield func(json.RawMessage) bool) {
		for _, h := range held {
			if m.line = h.line; !yield(json.RawMessage(h.value)) {
				return
			}
		}
		for ended == nil {
			if v, ended = m.l.value(); ended != nil {
				return
			}
			if m.line = m.l.n; !yield(json.RawMessage(v)) {
				return
			}
		}
	}
	m.begin(1)
	empty := true
	for said, err := range providers.DecodeMessages(api, "", "", list) {
		if err != nil {
			m.l.passOver(&LineError{File: m.l.file, Line: m.line, Cause: err})
			continue
		}
		if m.message(said, api, ""); m.out.stopped {
			return nil
		}
		empty = false
	}
	switch {
	case ended != nil && ended != io.EOF:
		return ended
	case empty && m.l.passed == 0:
		return m.l.wrong(errEmpty)
	}
	return nil
}
