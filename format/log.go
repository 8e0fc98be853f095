package format

import (
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Commit is a commit and what a list says beside it.
type Commit struct {
	*commit.Commit // with its block, origin and label, as far as they are to be shown

	Level priority.Level
	Why   priority.Why
	Turn  int              // 0: before the first user message
	Rev   string           // its ~n, counted from the revision that is listed; empty: unsaid
	Refs  []string         // names that point at it: HEAD -> main, tag: v1
	Notes []*commit.Commit // annotations and edits that speak of it, oldest first

	Damaged error // why its words, or something beside them, cannot be read; nil: it is whole
}

// LogStyle is how a log shows its commits.
type LogStyle struct {
	Oneline bool // a line for each
	Patch   bool // all of their content, not its first lines
}

// Log writes one commit of a log. In the long style it begins with an empty
// line unless it is the first that this printer logs.
func (p *Printer) Log(c Commit, s LogStyle) {
	g := p.page()
	if s.Oneline {
		g.oneline(c)
		g.end()
		return
	}
	if p.logged {
		g.gap()
	}
	p.logged = true
	g.head(c)
	if c.Block != nil || c.Damaged != nil {
		g.gap()
	}
	g.damaged(c.Damaged)
	if s.Patch || c.Tombstone != nil {
		g.words(c.Commit)
	} else {
		g.brief(c.Block)
	}
	g.end()
}

// Receipt writes that a commit was made: "[main 3fa2c1d] user: first line".
func (p *Printer) Receipt(branch string, c Commit) {
	p.receipt(branch, c.ID, what(c.Commit), c)
}

// Edited writes that an edit was made, and what it replaced: "[main 3fa2c1d] edited user
// 9198ae4: first line", which is that of the block.
func (p *Printer) Edited(branch string, edit objects.ID, block Commit) {
	p.receipt(branch, edit, "edited "+block.Kind.String()+" "+block.ID.Short(), block)
}

// receipt names a commit and what was done, and sums up what another one says.
func (p *Printer) receipt(branch string, made objects.ID, done string, said Commit) {
	g := p.page()
	g.add("[", paint(p.ink.ref, Line(branch)), " ", paint(p.ink.id, made.Short()), "] ")
	g.said("["+Line(branch)+" 1234567] ", done, said)
	g.end()
}

// what names a commit: its kind, or what it does to another.
func what(c *commit.Commit) string {
	switch c.Op {
	case commit.Edit:
		return "edit of " + c.Target.Short()
	case commit.Annotate:
		return c.Priority.String() + " " + c.Target.Short()
	case commit.Merge:
		return "merge of " + c.SecondParent().Short()
	case commit.Compress:
		return "summary of " + c.First.Short() + ".." + c.Target.Short()
	}
	return c.Kind.String()
}

// of is the ink of those who speak.
func (k *palette) of(r content.Role) ink {
	switch r {
	case content.RoleSystem:
		return k.system
	case content.RoleUser:
		return k.user
	case content.RoleAssistant:
		return k.assistant
	case content.RoleTool:
		return k.tool
	}
	return k.dim
}

func (g *page) oneline(c Commit) {
	before := c.ID.Short() + " "
	g.add(paint(g.ink.id, c.ID.Short()), " ")
	if c.Rev != "" {
		rev := Line(c.Rev) + " "
		g.add(paint(g.ink.dim, rev))
		before += rev
	}
	if refs := refList(c.Refs); refs != "" {
		g.add(paint(g.ink.ref, refs), " ")
		before += refs + " "
	}
	said := what(c.Commit)
	if l := unusual(c); l != "" {
		said += " [" + l + "]"
	}
	g.said(before, said, c)
}

// said adds the rest of a line that names a commit and sums up what it says.
// before is how the line began.
func (g *page) said(before, name string, c Commit) {
	summary := c.summary(g.after(before+name+": "), moreMark)
	if summary != "" {
		name += ": "
	}
	if c.Kind == content.KindReasoning && c.Op == commit.Append {
		g.line(paint(g.ink.thought, name+summary))
		return
	}
	g.line(paint(g.ink.of(c.Role), name), summary)
}

// unusual is the level of a commit, where it is not that of its kind.
func unusual(c Commit) string {
	if !c.AddsBlock() || c.Level == priority.Unset || c.Level == c.Kind.Traits().Level {
		return ""
	}
	return c.Level.String()
}

// refList is names in parentheses, as git shows them.
func refList(refs []string) string {
	if len(refs) == 0 {
		return ""
	}
	return "(" + Line(strings.Join(refs, ", ")) + ")"
}

// head adds what a log says above the words of a commit.
func (g *page) head(c Commit) {
	g.add(paint(g.ink.id, "commit "+c.ID.String()))
	if c.Rev != "" {
		g.add(" ", paint(g.ink.dim, Line(c.Rev)))
	}
	if refs := refList(c.Refs); refs != "" {
		g.add(" ", paint(g.ink.ref, refs))
	}
	g.gap()
	g.kind(c)
	if c.Op == commit.Merge {
		g.field("Parents", c.Parent().Short()+" "+c.SecondParent().Short())
	}
	g.field("Author", c.Author)
	g.field("Date", g.date(c.Time))
	if c.Origin != nil && c.Origin.Source == commit.SourceModel {
		g.field("Model", answered(c.Origin))
	}
	g.field("Label", c.Label.Text)
}

// kind adds what a commit is, by whom, and at which priority, where these are
// not what its kind says.
func (g *page) kind(c Commit) {
	said := what(c.Commit)
	if c.Op == commit.Append && c.Role != c.Kind.Traits().Role {
		said += ", role " + c.Role.String()
	}
	value := paint(g.ink.of(c.Role), said)
	if c.AddsBlock() && c.Level != priority.Unset && (unusual(c) != "" || c.Why != "" && c.Why != priority.WhyDefault) {
		level := c.Level.String()
		if c.Why != "" {
			level += " (" + Line(string(c.Why)) + ")"
		}
		value += ", " + paint(g.ink.changed, level)
	}
	g.line(pad("Kind:", fieldWidth), value)
}

// answered is the model that answered, and what it cost, in one line.
func answered(o *commit.Origin) string {
	said := joined("/", o.Provider, o.Model)
	if said == "" {
		said = "unknown"
	}
	if u := o.Usage; !u.IsZero() {
		said += " · " + usageText(u)
	}
	if o.Finish != "" {
		said += " · " + o.Finish
	}
	if o.Incomplete {
		said += " · incomplete"
	}
	return said
}

// usageText is tokens in words.
func usageText(u content.Usage) string {
	in, out := count(u.Input)+" in", count(u.Output)+" out"
	if u.Cached > 0 {
		in += " (" + count(u.Cached) + " cached)"
	}
	if u.Reasoning > 0 {
		out += " (" + count(u.Reasoning) + " reasoning)"
	}
	return in + ", " + out
}

// joined joins what is not empty.
func joined(sep string, words ...string) string {
	all := ""
	for _, w := range words {
		if w != "" && all != "" {
			all += sep
		}
		all += w
	}
	return all
}
