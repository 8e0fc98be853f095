package format

import (
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Conflict is a commit of which two histories say something else.
type Conflict struct {
	Commit objects.ID   `json:"commit"`
	Op     string       `json:"op"` // edit or annotate
	Ours   ConflictSide `json:"ours"`
	Theirs ConflictSide `json:"theirs"`
}

// ConflictSide is what one history says: the words of an edit, or a level and the
// reason for it.
type ConflictSide struct {
	Commit objects.ID      `json:"commit"`
	Author string          `json:"author,omitempty"`
	Time   time.Time       `json:"time"`
	Text   string          `json:"text"`
	Level  *priority.Level `json:"level,omitempty"`
}

// Conflict writes a conflict in three lines.
func (p *Printer) Conflict(c Conflict) {
	g := p.page()
	g.line(paint(g.ink.changed, "conflict: "+c.Op), " of ", paint(g.ink.id, c.Commit.Short()))
	g.side("ours", c.Ours)
	g.side("theirs", c.Theirs)
	g.end()
}

func (g *page) side(name string, s ConflictSide) {
	words := Line(clip(s.Text, 256))
	if s.Level != nil {
		words = joined(": ", s.Level.String(), words)
	}
	g.line("  ", pad(name, 7), paint(g.ink.id, s.Commit.Short()), " ", cut(words, g.after("  "+pad(name, 7)+s.Commit.Short()+" ")))
}
