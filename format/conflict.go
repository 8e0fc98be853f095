package format

import (
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Conflict writes a conflict in three lines.
func (p *Printer) Conflict(c tract.Conflict) {
	g := p.newBuffer()
	g.line(colorize(g.styles.changed, "conflict: "+c.Op.String()), " of ", colorize(g.styles.id, c.Commit.Short()))
	g.conflictLine("ours", c.Op, c.Ours)
	g.conflictLine("theirs", c.Op, c.Theirs)
	g.flush()
}

// conflictLine adds the line of one side of a conflict.
func (g *lineBuffer) conflictLine(name string, op commit.Op, s tract.Change) {
	text := Line(clipBytes(s.Text, 256))
	if op == commit.Annotate {
		text = joinNonEmpty(": ", s.Priority.String(), text)
	}
	g.line("  ", pad(name, 7), colorize(g.styles.id, s.Commit.Short()), " ", truncate(text, g.cellsLeft("  "+pad(name, 7)+s.Commit.Short()+" ")))
}

// ConflictJSON returns a conflict for programs.
func ConflictJSON(c tract.Conflict) any {
	type changeJSON struct {
		Commit objects.ID      `json:"commit"`
		Author string          `json:"author,omitempty"`
		Time   time.Time       `json:"time"`
		Text   string          `json:"text"`
		Level  *priority.Level `json:"level,omitempty"`
	}
	side := func(s tract.Change) changeJSON {
		v := changeJSON{Commit: s.Commit, Author: s.Author, Time: s.Time.UTC(), Text: s.Text}
		if c.Op == commit.Annotate {
			v.Level = &s.Priority
		}
		return v
	}
	return struct {
		Commit objects.ID `json:"commit"`
		Op     string     `json:"op"` // edit or annotate
		Ours   changeJSON `json:"ours"`
		Theirs changeJSON `json:"theirs"`
	}{c.Commit, c.Op.String(), side(c.Ours), side(c.Theirs)}
}
