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
	n     int // of the line
}

// heldPiece is most memory that is taken at once for lines that are shorter.
const heldPiece = 1 << 20

func (h *held) add(v rawjson.Value, n int) {
	if len(v) > cap(h.room)-len(h.room) {
		h.room = make([]byte, 0, max(len(v), min(2*cap(h.room), heldPiece), 4<<10))
	}
	at := len(h.room)
	h.room = append(h.room, v...)
	h.lines = append(h.lines, heldLine{h.room[at:len(h.room):len(h.room)], n})
	h.size += len(v)
}

// oneALine reads a conversation with a message on each line. What the first ones are
// may show in a later one, so they are held until then.
func (m *messageReader) oneALine(v rawjson.Value) error {
	var h held
	var l listed
	var ended error // the reading
	for ended == nil {
		h.add(v, m.l.n)
		if l.look(v); l.items || m.format == Anthropic || h.size >= m.most {
			break
		}
		v, ended = m.l.value()
	}
	_, api := l.dialect(m.format)
	at := 0 // the line that is read
	var list iter.Seq[rawjson.Value] = func(yield func(rawjson.Value) bool) {
		for _, line := range h.lines {
			if at = line.n; !yield(line.value) {
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
