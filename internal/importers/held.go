package importers

import (
	"encoding/json"
	"io"
	"iter"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// mostHeld is how many bytes of a conversation with a message on each line are held
// until it is clear what they are. What is not clear by then is OpenAI's.
const mostHeld = 64 << 20

// listed reads on from the first line until it is clear what a conversation is that has
// a message on each. The lines are held, and given again.
func (m *messageReader) listed(v rawjson.Value) (l listed) {
	m.l.hold()
	defer m.l.rewind()
	size := len(v)
	for l.look(v); !l.items && m.format != Anthropic && size < m.most; {
		line, err := m.l.next()
		if err != nil {
			return l // it comes again
		}
		size += len(line)
		if v, err = m.l.parse(line); err == nil {
			l.look(v)
		}
	}
	return l
}

// oneALine reads a conversation with a message on each line. What the first ones are
// may show in a later one, so they are held until then.
func (m *messageReader) oneALine(v rawjson.Value) error {
	at := m.l.n // the line that is read
	l := m.listed(v)
	_, api := l.dialect(m.format)
	var ended error // the reading
	var list iter.Seq[json.RawMessage] = func(yield func(json.RawMessage) bool) {
		for ended == nil && yield(json.RawMessage(v)) {
			if v, ended = m.l.value(); ended == nil {
				at = m.l.n
			}
		}
	}
	m.begin(1)
	empty := true
	for said, err := range providers.DecodeMessages(api, "", "", list) {
		if err != nil {
			m.l.passOver(&LineError{File: m.l.file, Line: at, Cause: err})
			continue
		}
		if m.message(said, api, ""); m.out.left {
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
