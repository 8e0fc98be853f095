package format

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// tab is the distance between tab stops, in cells.
const tab = 8

// width returns the number of cells of a line without color sequences that starts in the first cell,
// in any locale.
func width(uncolored string) int {
	w := 0
	for {
		before, after, found := strings.Cut(uncolored, "\t")
		w += displaywidth.String(before)
		if !found {
			return w
		}
		w, uncolored = w+tab-w%tab, after
	}
}

// expandTabs replaces tabs by spaces.
func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	w := 0
	for piece := range strings.SplitSeq(line, "\t") {
		if w > 0 || b.Len() > 0 {
			gap := tab - w%tab
			b.WriteString(strings.Repeat(" ", gap))
			w += gap
		}
		b.WriteString(piece)
		w += displaywidth.String(piece)
	}
	return b.String()
}

// truncate shortens a line without tabs to limit cells; 0: not at all.
func truncate(line string, limit int) string {
	if limit <= 0 || len(line) <= limit {
		return line
	}
	return displaywidth.TruncateString(clipBytes(line, limit), limit, "…")
}

// clipBytes shortens a very long line, before it is cut to limit cells.
func clipBytes(line string, limit int) string {
	if most := 64 * (limit + 1); limit > 0 && len(line) > most {
		return line[:completePrefixLen(line[:most])] + "…"
	}
	return line
}

// pad fills a line with spaces up to w cells.
func pad(line string, w int) string {
	if gap := w - displaywidth.String(line); gap > 0 {
		return line + strings.Repeat(" ", gap)
	}
	return line
}

// freeCellsInLastRow returns the number of free cells in the last row of a line that wraps at
// rowCells cells.
func freeCellsInLastRow(line string, rowCells int) int {
	w := displaywidth.String(line)
	if w > rowCells {
		w = 0
		for _, r := range line {
			n := displaywidth.Rune(r)
			if w+n > rowCells {
				w = 0
			}
			w += n
		}
	}
	return rowCells - w
}
