package format

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

// Match writes one match: the commit, its kind, the line number, and the line with the match
// highlighted.
func (p *Printer) Match(m inspect.Match) {
	g := p.newBuffer()
	g.add(colorize(p.styles.id, m.Commit.ID.Short()), " ", colorize(p.styles.forRole(m.Commit.Role), kindOrEffect(m.Commit)), colorize(p.styles.dim, ":"), thousands(int64(m.Line)), colorize(p.styles.dim, ":"), " ")
	body := p.styles.plain
	if m.Commit.Kind == content.KindReasoning {
		body = p.styles.reasoning
	}
	at := 0
	for _, s := range m.Spans {
		g.add(colorize(body, p.cleanLine(m.Text[at:s[0]])), colorize(p.styles.warn, p.cleanLine(m.Text[s[0]:s[1]])))
		at = s[1]
	}
	g.line(colorize(body, p.cleanLine(m.Text[at:])))
	g.flush()
}

// MatchJSON returns a match for programs.
func MatchJSON(m inspect.Match) any {
	return struct {
		Commit objects.ID   `json:"commit"`
		Op     string       `json:"op"`
		Kind   content.Kind `json:"kind"`
		Role   content.Role `json:"role"`
		Time   string       `json:"time"`
		Line   int          `json:"line"`
		Text   string       `json:"text"`
		Base64 string       `json:"text_base64,omitempty"`
		Spans  [][]int      `json:"spans"`
	}{
		Commit: m.Commit.ID, Op: m.Commit.Op.String(), Kind: m.Commit.Kind, Role: m.Commit.Role, Time: jsonTime(m.Commit.Time),
		Line: m.Line, Text: m.Text, Base64: base64OrEmptyIfValid(m.Text), Spans: m.Spans,
	}
}
