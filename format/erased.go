package format

import (
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// prunedJSON is why a commit has no words any more.
type prunedJSON struct {
	When string `json:"when"`
	Why  string `json:"why,omitempty"`
	Size int64  `json:"size"`
}

func newPruned(t *objects.Tombstone, size int64) *prunedJSON {
	if t == nil {
		return nil
	}
	return &prunedJSON{When: moment(t.Time), Why: valid(t.Why), Size: max(t.Size, size)}
}

// SummaryOf is [Summary] of what a commit says; one whose words were erased says that.
func SummaryOf(c *commit.Commit, width int) string {
	return summaryOf(c.Block, c.Tombstone, width, moreMark)
}

// SummaryJSON is SummaryOf for programs: no mark says that there are more lines.
func SummaryJSON(c *commit.Commit, width int) string {
	return summaryOf(c.Block, c.Tombstone, width, "")
}

func summaryOf(b content.Block, erased *objects.Tombstone, width int, mark string) string {
	if erased == nil {
		return summary(b, width, mark)
	}
	return cut(oneLine(clip(prunedText(erased), width)), width)
}

func prunedText(t *objects.Tombstone) string { return "[" + string(compile.WhyPurged(t)) + "]" }

// words adds all that a commit says, or that it says no more.
func (g *page) words(c *commit.Commit) {
	if c.Tombstone == nil {
		g.block(c.Block)
		return
	}
	g.line(indent, paint(g.ink.dim, g.flat(prunedText(c.Tombstone))))
}

// pruned adds a field about words that were erased.
func (g *page) pruned(c *commit.Commit) {
	if t := c.Tombstone; t != nil {
		said := t.Time.Format(time.DateOnly) + ", " + bytesOf(int(max(t.Size, c.Size)))
		g.field("Pruned", joined(": ", said, t.Why))
	}
}
