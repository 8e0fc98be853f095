package format

import (
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Commit is a commit with what a list shows beside it.
type Commit struct {
	*commit.Commit // with its block, origin and label, as far as they are to be shown

	Level priority.Level
	Why   priority.Why
	Turn  int              // 0: before the first user message
	Rev   string           // its ~n, counted from the revision that is listed; empty: unsaid
	Refs  []string         // names that point at it: HEAD -> main, tag: v1
	Notes []*commit.Commit // annotations and edits that speak of it, oldest first

	Agents []string // branches of the sub-agents that the call started

	Damaged error // why its words, or something beside them, cannot be read; nil: it is whole
}

// LogStyle is how a log shows its commits.
type LogStyle struct {
	Oneline bool // a line for each
	Patch   bool // all of their content, not its first lines
}

// Log writes one commit of a log, with an empty line between commits in the long style.
func (p *Printer) Log(c Commit, s LogStyle) {
	g := p.buffer()
	if s.Oneline {
		g.oneline(c)
		g.end()
		return
	}
	if p.logged {
		g.gap()
	}
	p.logged = true
	g.commitHeader(c)
	if c.Block != nil || c.Damaged != nil {
		g.gap()
	}
	g.damaged(c.Damaged)
	if s.Patch || c.Tombstone != nil {
		g.commitContent(c.Commit)
	} else {
		g.brief(c.Block)
	}
	g.end()
}

// Receipt writes that a commit was made: "[main 3fa2c1d] user: first line".
func (p *Printer) Receipt(branch string, c Commit) {
	p.receipt(branch, c.ID, commitTitle(c.Commit), c)
}

// Edited writes that an edit was committed: "[main 3fa2c1d] edited user 9198ae4: first line",
// the line being that of the block.
func (p *Printer) Edited(branch string, edit objects.ID, block Commit) {
	p.receipt(branch, edit, "edited "+block.Kind.String()+" "+block.ID.Short(), block)
}

// receipt writes a new commit, what was done, and the summary of another commit.
func (p *Printer) receipt(branch string, made objects.ID, done string, said Commit) {
	g := p.buffer()
	g.add("[", paint(p.styles.ref, Line(branch)), " ", paint(p.styles.id, made.Short()), "] ")
	g.summaryLine("["+Line(branch)+" 1234567] ", done, said)
	g.end()
}

// commitTitle names a commit: its kind, or what it does to another.
func commitTitle(c *commit.Commit) string {
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

func (k *styles) forRole(r content.Role) style {
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

func (g *lineBuffer) oneline(c Commit) {
	before := c.ID.Short() + " "
	g.add(paint(g.styles.id, c.ID.Short()), " ")
	if c.Rev != "" {
		rev := Line(c.Rev) + " "
		g.add(paint(g.styles.dim, rev))
		before += rev
	}
	if refs := refList(c.Refs); refs != "" {
		g.add(paint(g.styles.ref, refs), " ")
		before += refs + " "
	}
	if agents := agentList(c.Agents); agents != "" {
		g.add(paint(g.styles.ref, agents), " ")
		before += agents + " "
	}
	said := commitTitle(c.Commit)
	if l := unusualLevel(c); l != "" {
		said += " [" + l + "]"
	}
	g.summaryLine(before, said, c)
}

// summaryLine ends a line with a title and the summary of a commit. before is the start of the
// line.
func (g *lineBuffer) summaryLine(before, name string, c Commit) {
	summary := c.summary(g.cellsLeft(before+name+": "), moreMark)
	if summary != "" {
		name += ": "
	}
	if c.Kind == content.KindReasoning && c.Op == commit.Append {
		g.line(paint(g.styles.reasoning, name+summary))
		return
	}
	g.line(paint(g.styles.forRole(c.Role), name), summary)
}

// unusualLevel is the level of a commit, where it is not that of its kind.
func unusualLevel(c Commit) string {
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

// agentList is an arrow and the branches of sub-agents.
func agentList(branches []string) string {
	if len(branches) == 0 {
		return ""
	}
	return "-> " + Line(strings.Join(branches, ", "))
}

// commitLine adds the id of a commit, its revision and the refs at it.
func (g *lineBuffer) commitLine(c Commit) {
	g.add(paint(g.styles.id, "commit "+c.ID.String()))
	if c.Rev != "" {
		g.add(" ", paint(g.styles.dim, Line(c.Rev)))
	}
	if refs := refList(c.Refs); refs != "" {
		g.add(" ", paint(g.styles.ref, refs))
	}
	g.gap()
}

func (g *lineBuffer) commitHeader(c Commit) {
	g.commitLine(c)
	g.kindField(c)
	if c.Op == commit.Merge {
		g.field("Parents", c.Parent().Short()+" "+c.SecondParent().Short())
	}
	g.field("Author", c.Author)
	g.field("Date", g.date(c.Time))
	if c.Origin != nil && c.Origin.Source == commit.SourceModel {
		g.field("Model", modelText(c.Origin))
	}
	g.linkFields(c.Commit)
	g.field("Agent", agentList(c.Agents))
	g.field("Label", c.Label.Text)
}

// linkNames are the fields of the links of a recorded conversation, by their names in the
// origins of its commits.
var linkNames = []struct{ link, field, preposition string }{{"parent_commit", "Started", "by "}, {"forked_from", "Forked", "from "}, {"continues", "Follows", ""}}

// linkFields adds where a recorded conversation came from, to its first commit.
func (g *lineBuffer) linkFields(c *commit.Commit) {
	if c.Origin == nil {
		return
	}
	for _, name := range linkNames {
		id, err := objects.ParseID(c.Origin.Original[name.link])
		if err == nil && (c.Parent().IsZero() || c.Parent() == id) {
			g.field(name.field, name.preposition+id.Short())
		}
	}
}

// kindField adds the kind of a commit, and its role and priority unless they are the default.
func (g *lineBuffer) kindField(c Commit) {
	said := commitTitle(c.Commit)
	if c.Op == commit.Append && c.Role != c.Kind.Traits().Role {
		said += ", role " + c.Role.String()
	}
	value := paint(g.styles.forRole(c.Role), said)
	if c.AddsBlock() && c.Level != priority.Unset && (unusualLevel(c) != "" || c.Why != "" && c.Why != priority.WhyDefault) {
		level := c.Level.String()
		if c.Why != "" {
			level += " (" + Line(string(c.Why)) + ")"
		}
		value += ", " + paint(g.styles.changed, level)
	}
	g.line(pad("Kind:", fieldWidth), value)
}

// modelText is the model that answered, and what it cost, in one line.
func modelText(o *commit.Origin) string {
	said := joinNonEmpty("/", o.Provider, o.Model)
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

func usageText(u content.Usage) string {
	in, out := thousands(u.Input)+" in", thousands(u.Output)+" out"
	if u.Cached > 0 {
		in += " (" + thousands(u.Cached) + " cached)"
	}
	if u.Reasoning > 0 {
		out += " (" + thousands(u.Reasoning) + " reasoning)"
	}
	return in + ", " + out
}

func joinNonEmpty(sep string, words ...string) string {
	all := ""
	for _, w := range words {
		if w != "" && all != "" {
			all += sep
		}
		all += w
	}
	return all
}
