package format

import (
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// purgedJSON is the purge of content for programs.
type purgedJSON struct {
	When string `json:"when"`
	Why  string `json:"why,omitempty"`
	Size int64  `json:"size"`
}

func newPurged(t *objects.Tombstone, size int64) *purgedJSON {
	if t == nil {
		return nil
	}
	return &purgedJSON{When: jsonTime(t.Time), Why: validUTF8(t.Why), Size: max(t.Size, size)}
}

// SummaryOf is [Summary] of a commit. For a purged commit it returns a note about the purge.
func SummaryOf(c *commit.Commit, width int) string {
	return summaryOrPurged(c.Block, c.Tombstone, width, moreMark)
}

// SummaryJSON is SummaryOf for programs, without a mark for more lines.
func SummaryJSON(c *commit.Commit, width int) string {
	return summaryOrPurged(c.Block, c.Tombstone, width, "")
}

func summaryOrPurged(b content.Block, purged *objects.Tombstone, width int, markIfMore string) string {
	if purged == nil {
		return summary(b, width, markIfMore)
	}
	return truncate(oneLine(clipBytes(purgedText(purged), width)), width)
}

func purgedText(t *objects.Tombstone) string { return "[" + string(compile.WhyPurged(t)) + "]" }

func (g *lineBuffer) commitContent(c *commit.Commit) {
	if c.Tombstone == nil {
		g.block(c.Block)
		return
	}
	g.line(indent, colorize(g.styles.dim, g.flatten(purgedText(c.Tombstone))))
}

// purgedField adds a field about purged content.
func (g *lineBuffer) purgedField(c *commit.Commit) {
	if t := c.Tombstone; t != nil {
		text := t.Time.Format(time.DateOnly) + ", " + sizeText(int(max(t.Size, c.Size)))
		g.field("Purged", joinNonEmpty(": ", text, t.Why))
	}
}
