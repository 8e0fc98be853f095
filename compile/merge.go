package compile

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// sumUp leaves out what the summary of a merge stands for: what the merge brings
// and is of normal priority. What is pinned stays, and what is annotated after the
// merge comes back.
func (h *history) sumUp() {
	var at map[objects.ID]int
	for i := range h.entries {
		m := h.entries[i].Commit
		if m.Op != commit.Merge || !m.Says() {
			continue
		}
		if at == nil {
			at = h.places()
		}
		for j := i - h.brings[m.ID]; j < i; j++ {
			e := &h.entries[j]
			n := h.notes[e.Commit.ID]
			if !e.Sent || e.Level == priority.Pinned || e.Commit.Kind == content.KindSystem || n != nil && at[n.ID] > i {
				continue
			}
			e.leaveOut(priority.Why("summed up by " + m.ID.Short()))
		}
	}
}

// places tells where each annotation stands.
func (h *history) places() map[objects.ID]int {
	at := map[objects.ID]int{}
	for i := range h.entries {
		if c := h.entries[i].Commit; c.Op == commit.Annotate {
			at[c.ID] = i
		}
	}
	return at
}
