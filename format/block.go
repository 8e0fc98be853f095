package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
)

const (
	indent       = "    "
	reasoningTag = "[reasoning] "
	callTag      = "[tool-call] "
	resultTag    = "[tool-result] "
)

// block adds a whole block, indented.
func (g *lineBuffer) block(b content.Block) {
	switch b := b.(type) {
	case nil:
		return
	case content.Reasoning:
		g.reasoningLines(b)
	case content.ToolCall:
		g.toolCall(b)
	case content.ToolResult:
		g.toolResult(b)
	case content.Media:
		g.line(indent, g.flatten(mediaTitle(b)))
	case content.Native:
		g.line(indent, colorize(g.styles.dim, "["+g.flatten(nativeType(b))+"]"))
		g.textLines(g.styles.dim, b.JSON)
	default:
		if t, ok := b.(content.Text); ok && t.Name != "" {
			g.line(indent, colorize(g.styles.dim, "["+g.flatten(t.Name)+"]"))
		}
		g.textLines(g.styles.plain, b.String())
	}
	if b.Form().Incomplete {
		g.line(indent, colorize(g.styles.warn, "[incomplete]"))
	}
}

// reasoningLines adds reasoning, with its tag on the first line.
func (g *lineBuffer) reasoningLines(r content.Reasoning) {
	text := r.String()
	if strings.TrimSpace(text) == "" {
		text = "[" + noTextReason(r) + "]"
	}
	tag := reasoningTag
	for line := range lines(g.clean(text)) {
		g.reasoningLine(indent, tag, line)
		tag = ""
	}
}

// reasoningLine adds a line of reasoning, shaded to the width of the terminal.
func (g *lineBuffer) reasoningLine(indent, tag, line string) {
	fill := ""
	if g.styles.shaded {
		line = expandTabs(line)
		if g.o.Width > 0 {
			fill = strings.Repeat(" ", freeCellsInLastRow(indent+tag+line, g.o.Width))
		}
	}
	if tag+line+fill == "" {
		g.add("\n")
		return
	}
	if g.styles.shaded {
		g.add(colorize(g.styles.tag, indent+tag), colorize(g.styles.reasoning, line+fill), "\n")
		return
	}
	g.add(indent, colorize(g.styles.tag, tag), colorize(g.styles.reasoning, line), "\n")
}

func (g *lineBuffer) toolCall(c content.ToolCall) {
	about := ""
	if c.CallID != "" {
		about = colorize(g.styles.dim, "  "+g.flatten(c.CallID))
	}
	if c.Server {
		about += colorize(g.styles.dim, "  run by the provider")
	}
	g.line(indent, colorize(g.styles.tool, callTag+g.flatten(c.Name)), "(", g.cleanWithHangingIndent(c.Arguments), ")", about)
}

// cleanWithHangingIndent returns text as this printer shows it, with the lines after the first one
// indented.
func (g *lineBuffer) cleanWithHangingIndent(text string) string {
	return strings.ReplaceAll(g.clean(strings.TrimSpace(text)), "\n", "\n"+indent)
}

func (g *lineBuffer) toolResult(r content.ToolResult) {
	head := strings.TrimSpace(resultTag + g.flatten(r.CallID))
	s := g.styles.tool
	if r.IsError {
		head, s = head+" error", g.styles.warn
	}
	g.line(indent, colorize(s, head))
	g.textLines(g.styles.plain, r.String())
}

// maxLogLines is the number of lines of a block that a log shows.
const maxLogLines = 6

// maxLogCells is the number of cells of one line that a log shows.
const maxLogCells = 2000

// blockExcerpt adds the first lines of a block, and one line of reasoning or of a tool call.
func (g *lineBuffer) blockExcerpt(b content.Block) {
	switch b := b.(type) {
	case nil:
		return
	case content.Text:
		g.firstLines(b.Text)
	case content.ToolResult:
		if b.IsError {
			g.line(indent, colorize(g.styles.warn, "[error]"))
		}
		g.firstLines(resultText(b))
	case content.Reasoning:
		g.reasoningLine(indent, reasoningTag, Summary(b, g.cellsLeft(indent+reasoningTag)))
	case content.ToolCall:
		g.line(indent, colorize(g.styles.tool, callTag), Summary(b, g.cellsLeft(indent+callTag)))
	case content.Native:
		g.line(indent, colorize(g.styles.dim, "["+Summary(b, 0)+"]"))
	default:
		g.line(indent, Summary(b, g.cellsLeft(indent)))
	}
}

// firstLines adds the first lines of a text, and the number of the other lines.
func (g *lineBuffer) firstLines(text string) {
	text = strings.TrimRight(text, "\r\n")
	for n := 0; text != ""; n++ {
		if n == maxLogLines && strings.Contains(text, "\n") {
			g.line(indent, colorize(g.styles.dim, "… "+plural(strings.Count(text, "\n")+1, "more line")))
			return
		}
		line, more, _ := strings.Cut(text, "\n")
		g.styledLine(indent, g.styles.plain, truncate(g.cleanLine(line), maxLogCells))
		text = more
	}
}

// cellsLeft returns the cells left for a summary after a prefix, which has no color sequences; 0 is no
// limit.
func (g *lineBuffer) cellsLeft(uncoloredPrefix string) int {
	if g.o.Width <= 0 {
		return 0
	}
	return max(g.o.Width-width(uncoloredPrefix), minLastColumn)
}
