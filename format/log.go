package format

import (
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Commit is a commit with further values that a list shows.
type Commit struct {
	*commit.Commit // its block, origin and label are shown if they are loaded

	Level priority.Level
	Why   priority.Why
	Turn  int              // 0: before the first user message
	Rev   string           // its ~n, counted from the listed revision; empty: not shown
	Refs  []string         // refs that point to the commit: HEAD -> main, tag: v1
	Notes []*commit.Commit // its annotations and edits, oldest first

	Agents []string // branches of the sub-agents that the call started

	Damaged error // why its content or a part of its metadata cannot be read; nil: it is intact
}

// LogStyle selects the form of the commits in a log.
type LogStyle struct {
	Oneline bool // one line for each commit
	Patch   bool // the whole content, not its first lines
}

// Log writes one commit of a log, with an empty line between commits in the long style.
func (p *Printer) Log(c Commit, s LogStyle) {
	g := p.newBuffer()
	if s.Oneline {
		g.oneline(c)
		g.flush()
		return
	}
	if p.logged {
		g.emptyLine()
	}
	p.logged = true
	g.commitHeader(c)
	if c.Block != nil || c.Damaged != nil {
		g.emptyLine()
	}
	g.damagedLine(c.Damaged)
	if s.Patch || c.Tombstone != nil {
		g.commitContent(c.Commit)
	} else {
		g.blockExcerpt(c.Block)
	}
	g.flush()
}

// Receipt writes a line about a new commit: "[main 3fa2c1d] user: first line".
func (p *Printer) Receipt(branch string, c Commit) {
	p.writeReceipt(branch, c.ID, kindOrEffect(c.Commit), c)
}

// Edited writes a line about a new edit: "[main 3fa2c1d] edited user 9198ae4: first line", with the
// first line of the block.
func (p *Printer) Edited(branch string, edit objects.ID, block Commit) {
	p.writeReceipt(branch, edit, "edited "+block.Kind.String()+" "+block.ID.Short(), block)
}

// writeReceipt writes a line with a new commit, the action, and the summary of a commit.
func (p *Printer) writeReceipt(branch string, made objects.ID, action string, summarized Commit) {
	g := p.newBuffer()
	g.add("[", colorize(p.styles.ref, Line(branch)), " ", colorize(p.styles.id, made.Short()), "] ")
	g.endLineWithTitleAndContentSummary("["+Line(branch)+" 1234567] ", action, summarized)
	g.flush()
}

// kindOrEffect returns the title of a commit: its kind, or its effect on another commit.
func kindOrEffect(c *commit.Commit) (title string) {
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

func (s *styles) forRole(r content.Role) style {
	switch r {
	case content.RoleSystem:
		return s.system
	case content.RoleUser:
		return s.user
	case content.RoleAssistant:
		return s.assistant
	case content.RoleTool:
		return s.tool
	}
	return s.dim
}

func (g *lineBuffer) oneline(c Commit) {
	before := c.ID.Short() + " "
	g.add(colorize(g.styles.id, c.ID.Short()), " ")
	if c.Rev != "" {
		rev := Line(c.Rev) + " "
		g.add(colorize(g.styles.dim, rev))
		before += rev
	}
	if refs := refsInParentheses(c.Refs); refs != "" {
		g.add(colorize(g.styles.ref, refs), " ")
		before += refs + " "
	}
	if agents := arrowAndAgents(c.Agents); agents != "" {
		g.add(colorize(g.styles.ref, agents), " ")
		before += agents + " "
	}
	title := kindOrEffect(c.Commit)
	if l := unusualLevel(c); l != "" {
		title += " [" + l + "]"
	}
	g.endLineWithTitleAndContentSummary(before, title, c)
}

// endLineWithTitleAndContentSummary adds a title and the summary of a commit's content to the
// current line, and ends it. lineSoFar is what the line has already; it is only measured.
func (g *lineBuffer) endLineWithTitleAndContentSummary(lineSoFar, title string, c Commit) {
	summary := c.summary(g.cellsLeft(lineSoFar+title+": "), moreMark)
	if summary != "" {
		title += ": "
	}
	if c.Kind == content.KindReasoning && c.Op == commit.Append {
		g.line(colorize(g.styles.reasoning, title+summary))
		return
	}
	g.line(colorize(g.styles.forRole(c.Role), title), summary)
}

// unusualLevel returns the level of a commit, if it is not the default of its kind.
func unusualLevel(c Commit) string {
	if !c.AddsBlock() || c.Level == priority.Unset || c.Level == c.Kind.Traits().Level {
		return ""
	}
	return c.Level.String()
}

// refsInParentheses returns the names in parentheses, as git shows them; empty: there are none.
func refsInParentheses(refs []string) string {
	if len(refs) == 0 {
		return ""
	}
	return "(" + Line(strings.Join(refs, ", ")) + ")"
}

// arrowAndAgents returns an arrow and the branches of sub-agents; empty: there are none.
func arrowAndAgents(branches []string) string {
	if len(branches) == 0 {
		return ""
	}
	return "-> " + Line(strings.Join(branches, ", "))
}

// commitLine adds the id of a commit, its revision and the refs at it.
func (g *lineBuffer) commitLine(c Commit) {
	g.add(colorize(g.styles.id, "commit "+c.ID.String()))
	if c.Rev != "" {
		g.add(" ", colorize(g.styles.dim, Line(c.Rev)))
	}
	if refs := refsInParentheses(c.Refs); refs != "" {
		g.add(" ", colorize(g.styles.ref, refs))
	}
	g.add("\n")
}

func (g *lineBuffer) commitHeader(c Commit) {
	g.commitLine(c)
	g.kindField(c)
	if c.Op == commit.Merge {
		g.field("Parents", c.Parent().Short()+" "+c.SecondParent().Short())
	}
	g.field("Author", c.Author)
	g.field("Date", g.fullTime(c.Time))
	if c.Origin != nil && c.Origin.Source == commit.SourceModel {
		g.field("Model", modelAndUsage(c.Origin))
	}
	g.originLinkFields(c.Commit)
	g.field("Agent", arrowAndAgents(c.Agents))
	g.field("Label", c.Label.Text)
}

// linkNames are the fields of the links of a recorded conversation, by their names in the
// origins of its commits.
var linkNames = []struct{ link, field, preposition string }{{"parent_commit", "Started", "by "}, {"forked_from", "Forked", "from "}, {"continues", "Follows", ""}}

// originLinkFields adds the fields that say where a recorded conversation came from, for its first
// commit.
func (g *lineBuffer) originLinkFields(c *commit.Commit) {
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
	title := kindOrEffect(c.Commit)
	if c.Op == commit.Append && c.Role != c.Kind.Traits().Role {
		title += ", role " + c.Role.String()
	}
	value := colorize(g.styles.forRole(c.Role), title)
	if c.AddsBlock() && c.Level != priority.Unset && (unusualLevel(c) != "" || c.Why != "" && c.Why != priority.WhyDefault) {
		level := c.Level.String()
		if c.Why != "" {
			level += " (" + Line(string(c.Why)) + ")"
		}
		value += ", " + colorize(g.styles.changed, level)
	}
	g.line(pad("Kind:", fieldWidth), value)
}

// modelAndUsage returns the model of a response, its usage and how it ended, in one line.
func modelAndUsage(o *commit.Origin) string {
	text := joinNonEmpty("/", o.Provider, o.Model)
	if text == "" {
		text = "unknown"
	}
	if u := o.Usage; !u.IsZero() {
		text += " · " + usageText(u)
	}
	if o.Finish != "" {
		text += " · " + o.Finish
	}
	if o.Incomplete {
		text += " · incomplete"
	}
	return text
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

func joinNonEmpty(sep string, parts ...string) string {
	all := ""
	for _, w := range parts {
		if w != "" && all != "" {
			all += sep
		}
		all += w
	}
	return all
}
