package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
)

// contextLines is how many lines beside a change are shown.
const contextLines = 3

// byLine adds a text by lines. Long runs of lines that are the same are folded.
func (g *lineBuffer) byLine(spans []diff.Span, b content.Block) {
	for n, s := range spans {
		i := g.styleFor(s.Op, b)
		shown := strings.SplitAfter(s.Text, "\n")
		if shown[len(shown)-1] == "" {
			shown = shown[:len(shown)-1]
		}
		from, to := 0, 0 // what is folded
		if s.Op == diff.Same {
			from, to = foldRange(len(shown), n > 0, n < len(spans)-1)
		}
		for at, line := range shown {
			if at == from && to > from {
				g.line(paint(g.styles.dim, "    … "+plural(to-from, "line")+" the same"))
			}
			if at < from || at >= to {
				g.markedLine(i, s.Op, g.cleanLine(line))
			}
		}
	}
}

// markedLine adds a line with a mark before it.
func (g *lineBuffer) markedLine(i style, op diff.Op, line string) {
	g.line(paint(i, strings.TrimRight(marks[op]+"   "+line, " ")))
}

// foldRange returns which of n equal lines are hidden between changes before and after.
func foldRange(n int, before, after bool) (from, to int) {
	to = n
	if before {
		from = min(contextLines, n)
	}
	if after {
		to = max(n-contextLines, from)
	}
	if to-from < 2 { // a line that says so is as long
		return n, n
	}
	return from, to
}

// byWord adds a text with the changes in its lines.
func (g *lineBuffer) byWord(spans []diff.Span, b content.Block) {
	var line strings.Builder
	for n, s := range spans {
		if s.Op == diff.Same {
			s.Text = foldUnchanged(s.Text, n > 0, n < len(spans)-1)
		}
		left, right := "", ""
		if !g.o.Color || b.Kind() == content.KindReasoning { // whose changes have no colours of their own
			left, right = map[diff.Op]string{diff.Remove: "[-", diff.Add: "{+"}[s.Op], map[diff.Op]string{diff.Remove: "-]", diff.Add: "+}"}[s.Op]
		}
		for piece := range strings.SplitAfterSeq(s.Text, "\n") {
			words, end := strings.CutSuffix(piece, "\n")
			if words != "" || end && s.Op != diff.Same {
				shown := g.clean(words)
				if words == "" {
					shown = "¶" // a line feed came or went
				}
				line.WriteString(paint(g.styleFor(s.Op, b), left+shown+right))
			}
			if end {
				g.line(indent, line.String())
				line.Reset()
			}
		}
	}
	if line.Len() > 0 {
		g.line(indent, line.String())
	}
}

// foldUnchanged takes long runs of whole lines out of a text that is the same.
func foldUnchanged(text string, before, after bool) string {
	shown := strings.SplitAfter(text, "\n")
	from, to := foldRange(len(shown), before, after)
	if from == to {
		return text
	}
	note := "… " + plural(to-from, "line") + " the same\n"
	if to == len(shown) {
		note = strings.TrimSuffix(note, "\n")
	}
	return strings.Join(shown[:from], "") + note + strings.Join(shown[to:], "")
}
