package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
)

// contextLines is the number of unchanged lines that are shown next to a change.
const contextLines = 3

// addLineDiff adds the changes of a text line by line. Long runs of unchanged lines are folded.
func (g *lineBuffer) addLineDiff(spans []diff.Span, b content.Block) {
	for n, span := range spans {
		shown := strings.SplitAfter(span.Text, "\n")
		if shown[len(shown)-1] == "" {
			shown = shown[:len(shown)-1]
		}
		from, to := 0, 0 // the folded lines
		if span.Op == diff.Same {
			from, to = foldRange(len(shown), n > 0, n < len(spans)-1)
		}
		for at, line := range shown {
			if at == from && to > from {
				g.line(colorize(g.styles.dim, "    … "+plural(to-from, "line")+" the same"))
			}
			if at < from || at >= to {
				g.markedLine(g.opStyleUnlessReasoning(span.Op, b), span.Op, g.cleanLine(line))
			}
		}
	}
}

// markedLine adds a line with a mark before it.
func (g *lineBuffer) markedLine(s style, op diff.Op, line string) {
	g.line(colorize(s, strings.TrimRight(marks[op]+"   "+line, " ")))
}

// foldRange returns the range of n unchanged lines that is folded. changeBefore and changeAfter
// report on which sides of the lines there is a change: next to it, some lines stay for context.
func foldRange(n int, changeBefore, changeAfter bool) (from, to int) {
	to = n
	if changeBefore {
		from = min(contextLines, n)
	}
	if changeAfter {
		to = max(n-contextLines, from)
	}
	if to-from < 2 { // folding one line saves nothing
		return n, n
	}
	return from, to
}

// addWordDiff adds a text with the changed words marked within its lines.
func (g *lineBuffer) addWordDiff(spans []diff.Span, b content.Block) {
	var line strings.Builder
	for n, s := range spans {
		if s.Op == diff.Same {
			s.Text = foldUnchanged(s.Text, n > 0, n < len(spans)-1)
		}
		left, right := "", ""
		if !g.o.Color || b.Kind() == content.KindReasoning { // changes in reasoning have no colors of their own
			left, right = map[diff.Op]string{diff.Remove: "[-", diff.Add: "{+"}[s.Op], map[diff.Op]string{diff.Remove: "-]", diff.Add: "+}"}[s.Op]
		}
		for piece := range strings.SplitAfterSeq(s.Text, "\n") {
			words, end := strings.CutSuffix(piece, "\n")
			if words != "" || end && s.Op != diff.Same {
				shown := g.clean(words)
				if words == "" {
					shown = "¶" // a line feed came or went
				}
				line.WriteString(colorize(g.opStyleUnlessReasoning(s.Op, b), left+shown+right))
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

// foldUnchanged replaces a long run of lines in an unchanged text by a note. changeBefore and
// changeAfter are as for foldRange.
func foldUnchanged(text string, changeBefore, changeAfter bool) string {
	shown := strings.SplitAfter(text, "\n")
	from, to := foldRange(len(shown), changeBefore, changeAfter)
	if from == to {
		return text
	}
	note := "… " + plural(to-from, "line") + " the same\n"
	if to == len(shown) {
		note = strings.TrimSuffix(note, "\n")
	}
	return strings.Join(shown[:from], "") + note + strings.Join(shown[to:], "")
}
