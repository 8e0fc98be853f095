package format

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Prompt writes a prompt as text: each role, then its blocks, indented.
func (p *Printer) Prompt(pr *compile.Prompt) {
	for i, commits := range pr.MessageCommits() {
		m := pr.Messages[i]
		g := p.newBuffer()
		if i > 0 {
			g.emptyLine()
		}
		g.line(colorize(p.styles.forRole(m.Role), m.Role.String()), "  ", colorize(p.styles.id, idRange(commits)))
		for j, b := range m.Blocks {
			if j > 0 {
				g.emptyLine()
			}
			g.block(b)
		}
		g.flush()
	}
	g := p.newBuffer()
	for _, w := range pr.Pending {
		g.line(colorize(p.styles.warn, "waits for a result: "), g.flatten(w.Call.CallID), " ", Summary(w.Call, g.cellsLeft("waits for a result: "+g.flatten(w.Call.CallID)+" ")))
	}
	if g.b.Len() > 0 {
		p.write("\n")
	}
	g.flush()
}

// idRange returns the range of ids, from the first to the last.
func idRange(ids []objects.ID) string {
	switch len(ids) {
	case 0:
		return ""
	case 1:
		return ids[0].Short()
	}
	return ids[0].Short() + ".." + ids[len(ids)-1].Short()
}

// Tokens writes the estimated size of a prompt: "1,204 tokens effective, 3,000 raw; left out:
// 400, reasoning 1,396".
func (p *Printer) Tokens(t compile.Tokens) {
	p.write(colorize(p.styles.dim, effectiveAndRawTokens(t)) + "\n")
}

// Scale writes the way in which tokens were estimated, when responses reported their input.
func (p *Printer) Scale(s compile.Scale) {
	if s.Responses == 0 {
		return
	}
	responses := "the last response"
	if s.Responses > 1 {
		responses = "the last " + thousands(int64(s.Responses)) + " responses"
	}
	p.write(colorize(p.styles.dim, fmt.Sprintf("tokens are a quarter of the bytes times %.2f, by the input that %s of %s reported", s.Factor, responses, Line(s.Model))) + "\n")
}

// effectiveAndRawTokens returns the tokens of a prompt, without and with what is left out of it.
func effectiveAndRawTokens(t compile.Tokens) string {
	number := func(n int) string { return thousands(int64(n)) }
	text := number(t.Effective) + " tokens effective, " + number(t.Raw) + " raw"
	if t.Hidden+t.HiddenReasoning == 0 {
		return text
	}
	text += "; left out: " + number(t.Hidden)
	if t.HiddenReasoning > 0 {
		text += ", reasoning " + number(t.HiddenReasoning)
	}
	return text
}

// estimatedTokens returns the estimated tokens that a commit adds to a prompt.
func estimatedTokens(c *commit.Commit) int {
	if c.Op == commit.Annotate {
		return 0
	}
	return compile.Estimate(c.Kind.PromptBytes(c.Size))
}

// Explain writes a line for each commit of a prompt's history, oldest first: + if sent, - if
// not, its id, kind, priority, tokens, the deciding rule, and a summary if it was loaded.
func (p *Printer) Explain(pr *compile.Prompt) {
	edits := map[objects.ID]content.Block{}
	for _, e := range pr.Entries {
		if e.Op == commit.Edit {
			edits[e.ID] = e.Block
		}
	}
	var rows [][]cell
	tokens := pr.EntryTokens()
	for i := range pr.Entries {
		e := &pr.Entries[i]
		block := e.Block
		if edit := edits[e.EditedBy()]; edit != nil {
			block = edit
		}
		rows = append(rows, p.entryRow(e, tokens[i], block))
	}
	g := p.newBuffer()
	g.table(rows)
	g.flush()
}

// entryRow returns the table row of one commit.
func (p *Printer) entryRow(e *compile.Entry, tokens int, block content.Block) []cell {
	mark, body := styledCell(p.styles.added, "+"), p.styles.plain
	if !e.InPrompt {
		mark, body = styledCell(p.styles.removed, "-"), p.styles.dim
	}
	kind, level, cost := e.Kind.String(), e.Level.String(), thousands(int64(tokens))
	if !e.AddsBlock() {
		mark, kind, level, cost = styledCell(p.styles.dim, " "), e.Op.String(), levelName(e.Priority), ""
		if e.Op == commit.Edit || e.Op == commit.Merge {
			level = ""
		}
	}
	levels := map[string]style{priority.Pinned.String(): p.styles.accent, priority.Skip.String(): p.styles.dim}
	shade := body
	if i, ok := levels[level]; ok {
		shade = i
	}
	price := styledCell(body, cost)
	price.right = true
	return []cell{
		mark, styledCell(p.styles.id, e.ID.Short()), styledCell(body, kind), styledCell(shade, level), price,
		styledCell(body, truncate(p.flatten(string(e.Why())), whyCells)), styledCell(reasoningStyleOr(p.styles, e.Kind, body), summaryOrPurged(block, e.Tombstone(), summaryCells, moreMark)),
	}
}

// whyCells is the number of cells of a reason that a list shows.
const whyCells = 40

// summaryCells is the number of cells of a summary that a list shows.
const summaryCells = 120

// reasoningStyleOr returns the style of reasoning for that kind, and other for any other kind.
func reasoningStyleOr(k *styles, kind content.Kind, other style) style {
	if kind == content.KindReasoning {
		return k.reasoning
	}
	return other
}

// heading describes a block by role, kind and name.
func heading(role content.Role, b content.Block) string {
	words := []string{role.String()}
	if kind := b.Kind().String(); kind != words[0] {
		words = append(words, kind)
	}
	switch b := b.(type) {
	case content.ToolCall:
		words = append(words, b.Name)
	case content.ToolResult:
		words = append(words, b.CallID)
	case content.Text:
		words = append(words, b.Name)
	case content.Native:
		words = append(words, nativeType(b))
	}
	return oneLine(strings.Join(words, " "))
}
