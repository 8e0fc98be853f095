package compile

import (
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Erased is what a model is sent in the place of a tool result whose words were
// erased. The call would be refused without a result, and without both the model
// would think that it never called.
const Erased = "[erased]"

// WhyErased is the reason of a block that is not sent because its words were erased.
func WhyErased(t *objects.Tombstone) priority.Why {
	why := "pruned " + t.Time.Format(time.DateOnly)
	if t.Why != "" {
		why += ": " + t.Why
	}
	return priority.Why(why)
}

// Erased is the tombstone of what the entry would say; nil when its words are there,
// or were not needed.
func (e *Entry) Erased() *objects.Tombstone { return e.erased }

// leaveErased takes the entries out whose words are gone, but for results of tools:
// a placeholder is sent for them.
func (h *history) leaveErased() {
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Commit.Says() {
			continue
		}
		if e.erased = h.says(e).Erased; e.erased == nil || !e.Sent {
			continue
		}
		if e.Commit.Kind == content.KindToolResult {
			e.Why = WhyErased(e.erased)
			continue
		}
		e.leaveOut(WhyErased(e.erased))
	}
}

// leaves is what an erased entry still counts: the placeholder, if one is sent.
func (e *Entry) leaves() int {
	if !e.Sent {
		return 0
	}
	return min(e.Tokens, Estimate(int64(len(Erased))))
}

// said is the block of a commit as it is sent.
func said(c *commit.Commit) content.Block {
	if result, ok := c.Block.(content.ToolResult); ok && c.Erased != nil {
		result.Text = Erased
		return result
	}
	return c.Block
}
