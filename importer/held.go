package importer

import (
	"bytes"
	"io"
	"iter"

	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// mostHeld is how many bytes of a conversation with a message on each line are held
// until it is clear what they are. What is not clear by then is OpenAI's.
const mostHeld = 64 << 20

// held is lines that were read and not decoded yet.
type held struct {
	lines []heldLine
	room  []byte // that the next ones lie in
	size  int
}

type heldLine struct {
	value rawjson.Value
	n     int  // of the line
	plain bool // nobody has looked whether it is JSON
}

// heldPiece is most memory that is taken at once for lines that are shorter.
const heldPiece = 1 << 20

func (h *held) add(v rawjson.Value, n int, plain bool) {
	if len(v) > cap(h.room)-len(h.room) {
		h.room = make([]byte, 0, max(len(v), min(2*cap(h.room), heldPiece), 4<<10))
	}
	at := len(h.room)
	h.room = append(h.room, v...)
	h.lines = append(h.lines, heldLine{h.room[at:len(h.room):len(h.room)], n, plain})
	h.size += len(v)
}

// isLast tells whether a line is the last that was read, by what ended the reading.
func (h *held) isLast(i int, ended error) bool {
	return i == len(h.lines)-1 && (ended == nil || ended == io.EOF)
}

// hold holds lines from one on until it is clear what they are, and gives what ended the
// reading before that.
func (m *messageReader) hold(h *held, l *listed, v rawjson.Value) error {
	h.add(v, m.l.n, false)
	for l.look(v); !l.items && m.format != Anthropic && h.size < m.most; {
		line, err := m.l.next()
		if err != nil {
			return err
		}
		if plain(line) {
			h.add(line, m.l.n, true)
			continue
		}
		if v, err = rawjson.Parse(line); err != nil {
			return m.l.wrong(err)
		}
		h.add(v, m.l.n, false)
		l.look(v)
	}
	return nil
}

// oneALine reads a conversation with a message on each line. What the first ones are
// may show in a later one, so they are held until then.
func (m *messageReader) oneALine(v rawjson.Value) error {
	var h held
	var l listed
	ended := m.hold(&h, &l, v) // the reading
	_, api := l.dialect(m.format)
	at := 0 // the line that is read
	var list iter.Seq[rawjson.Value] = func(yield func(rawjson.Value) bool) {
		for i, line := range h.lines {
			at = line.n
			if bad := line.check(); bad != nil {
				ended = m.l.wrongAt(at, h.isLast(i, ended), bad)
				return
			}
			if !yield(line.value) {
				return
			}
		}
		for h = (held{}); ended == nil; {
			var v rawjson.Value
			if v, ended = m.l.value(); ended == nil {
				if at = m.l.n; !yield(bytes.Clone(v)) {
					return
				}
			}
		}
	}
	m.begin()
	empty := true
	for said, err := range providers.DecodeMessages(api, "", "", list) {
		if err != nil {
			return &LineError{File: m.l.file, Line: at, Cause: err}
		}
		if m.message(said, api, ""); m.out.left {
			return nil
		}
		empty = false
	}
	switch {
	case ended != nil && ended != io.EOF:
		return ended
	case empty:
		return m.l.wrong(errEmpty)
	}
	return nil
}

// check says what is wrong with a line that nobody has looked at.
func (l *heldLine) check() error {
	if !l.plain {
		return nil
	}
	_, err := rawjson.Parse(l.value)
	return err
}
