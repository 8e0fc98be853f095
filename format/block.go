package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
)

const (
	indent     = "    "
	thoughtTag = "[reasoning] "
	callTag    = "[tool-call] "
	resultTag  = "[tool-result] "
)

// block adds all of a block, indented.
func (g *page) block(b content.Block) {
	switch b := b.(type) {
	case nil:
		return
	case content.Reasoning:
		g.thought(b)
	case content.ToolCall:
		g.call(b)
	case content.ToolResult:
		g.result(b)
	case content.Media:
		g.line(indent, g.flat(describe(b)))
	case content.Native:
		g.line(indent, paint(g.ink.dim, "["+g.flat(nativeType(b))+"]"))
		g.text(indent, g.ink.dim, b.JSON)
	default:
		if t, ok := b.(content.Text); ok && t.Name != "" {
			g.line(indent, paint(g.ink.dim, "["+g.flat(t.Name)+"]"))
		}
		g.text(indent, g.ink.plain, b.String())
	}
	if b.Form().Incomplete {
		g.line(indent, paint(g.ink.warn, "[incomplete]"))
	}
}

// thought adds a thought, its tag before its first line.
func (g *page) thought(r content.Reasoning) {
	text := r.String()
	if strings.TrimSpace(text) == "" {
		text = "[" + unreadable(r) + "]"
	}
	tag := thoughtTag
	for line := range lines(g.clean(text)) {
		g.shade(indent, tag, line)
		tag = ""
	}
}

// shade adds one line of a thought. Its shade is as wide as the terminal.
func (g *page) shade(indent, tag, line string) {
	fill := ""
	if g.ink.shaded {
		line = expand(line)
		if g.o.Width > 0 {
			fill = strings.Repeat(" ", rest(indent+tag+line, g.o.Width))
		}
	}
	if tag+line+fill == "" {
		g.add("\n")
		return
	}
	if g.ink.shaded {
		g.add(paint(g.ink.tag, indent+tag), paint(g.ink.thought, line+fill), "\n")
		return
	}
	g.add(indent, paint(g.ink.tag, tag), paint(g.ink.thought, line), "\n")
}

func (g *page) call(c content.ToolCall) {
	about := ""
	if c.CallID != "" {
		about = paint(g.ink.dim, "  "+g.flat(c.CallID))
	}
	if c.Server {
		about += paint(g.ink.dim, "  run by the provider")
	}
	g.line(indent, paint(g.ink.tool, callTag+g.flat(c.Name)), "(", g.arguments(c.Arguments), ")", about)
}

// arguments is those of a call; further lines are indented as the first is.
func (g *page) arguments(s string) string {
	return strings.ReplaceAll(g.clean(strings.TrimSpace(s)), "\n", "\n"+indent)
}

func (g *page) result(r content.ToolResult) {
	head := strings.TrimSpace(resultTag + g.flat(r.CallID))
	i := g.ink.tool
	if r.IsError {
		head, i = head+" error", g.ink.warn
	}
	g.line(indent, paint(i, head))
	g.text(indent, g.ink.plain, r.String())
}

// fewLines is how much of a block a log shows.
const fewLines = 6

// briefCells is how much of one line a log shows.
const briefCells = 2000

// brief adds the first lines of a block; of a thought or a call, one.
func (g *page) brief(b content.Block) {
	switch b := b.(type) {
	case nil:
		return
	case content.Text:
		g.few(b.Text)
	case content.ToolResult:
		if b.IsError {
			g.line(indent, paint(g.ink.warn, "[error]"))
		}
		g.few(resultText(b))
	case content.Reasoning:
		g.shade(indent, thoughtTag, Summary(b, g.after(indent+thoughtTag)))
	case content.ToolCall:
		g.line(indent, paint(g.ink.tool, callTag), Summary(b, g.after(indent+callTag)))
	case content.Native:
		g.line(indent, paint(g.ink.dim, "["+Summary(b, 0)+"]"))
	default:
		g.line(indent, Summary(b, g.after(indent)))
	}
}

// few adds the first lines of a text, and how many more there are.
func (g *page) few(text string) {
	text = strings.TrimRight(text, "\r\n")
	for n := 0; text != ""; n++ {
		if n == fewLines && strings.Contains(text, "\n") {
			g.line(indent, paint(g.ink.dim, "… "+many(strings.Count(text, "\n")+1, "more line")))
			return
		}
		line, more, _ := strings.Cut(text, "\n")
		g.row(indent, g.ink.plain, cut(g.one(line), briefCells))
		text = more
	}
}

// after is how many cells are left for a summary after so much of a line; 0: as
// many as it takes.
func (g *page) after(before string) int {
	if g.o.Width <= 0 {
		return 0
	}
	return max(g.o.Width-width(before), leastCell)
}
