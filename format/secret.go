package format

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// Secret is a stored secret that a scan found.
type Secret struct {
	maintain.Leak
	Why string // why a purge of secrets left it; empty: it was purged, or there was no purge
}

// Secret writes one finding: the commit, its kind, the location, the rule, and the masked text
// around it.
func (p *Printer) Secret(s Secret) {
	g := p.newBuffer()
	g.add(colorize(p.styles.id, s.Commit.ID.Short()), " ", colorize(p.styles.forRole(s.Commit.Role), kindOrEffect(s.Commit)), colorize(p.styles.dim, ":"))
	if s.Where == "content" {
		g.add(thousands(int64(s.Line)))
	} else {
		g.add(p.cleanLine(s.Where))
	}
	g.add(colorize(p.styles.dim, ":"), " ", colorize(p.styles.warn, s.Rule))
	switch {
	case s.Open:
		g.add(colorize(p.styles.dim, " (sealed, in an open turn)"))
	case s.Sealed:
		g.add(colorize(p.styles.dim, " (sealed)"))
	}
	g.line(" ", colorize(p.styles.plain, p.cleanLine(s.Excerpt)))
	g.flush()
}

// SecretJSON returns a secret for programs.
func SecretJSON(s Secret) any {
	return struct {
		Rule    string       `json:"rule"`
		Commit  objects.ID   `json:"commit"`
		Op      string       `json:"op"`
		Kind    content.Kind `json:"kind"`
		Role    content.Role `json:"role"`
		Time    string       `json:"time"`
		Where   string       `json:"where"`
		Line    int          `json:"line"`
		Excerpt string       `json:"excerpt"`
		Object  objects.ID   `json:"object"`
		Sealed  bool         `json:"sealed,omitempty"`
		Open    bool         `json:"open,omitempty"`
		Why     string       `json:"why,omitempty"`
	}{
		Rule: s.Rule, Commit: s.Commit.ID, Op: s.Commit.Op.String(), Kind: s.Commit.Kind, Role: s.Commit.Role, Time: jsonTime(s.Commit.Time),
		Where: s.Where, Line: s.Line, Excerpt: s.Excerpt, Object: s.Object, Sealed: s.Sealed, Open: s.Open, Why: s.Why,
	}
}
