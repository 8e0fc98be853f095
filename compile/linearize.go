package compile

import (
	"context"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// linearize makes the entries of a history with merges, in the order of [commit.Linearize]: the
// commits that a merge brings follow those of its first parent. A commit whose parent is not the
// commit before it begins a message.
func (h *history) linearize(ctx context.Context, r objects.Reader, head objects.ID) error {
	line, err := commit.Linearize(ctx, r, head)
	if err != nil {
		return err
	}
	h.entries = make([]Entry, len(line))
	var previous objects.ID
	for i, c := range line {
		e := &h.entries[i]
		e.setCommit(c, nil)
		if c.Parent() != previous {
			e.flags |= gapBefore
		}
		previous = c.ID
	}
	h.markMerged(head, line)
	return h.findRangesOfMergedSummaries(ctx, r, line)
}

// markMerged marks the entries that merges brought. order is the history in the order of its entries.
func (h *history) markMerged(head objects.ID, order []*commit.Commit) {
	own := head // the commits that head has by first parent
	for i, c := range slices.Backward(order) {
		if c.ID == own {
			own = c.Parent()
			continue
		}
		h.entries[i].flags |= merged
	}
}

// findRangesOfMergedSummaries finds the ranges of the summaries that merges brought. A summary covers
// the commits between First and Target on the line on which it was made; in the merged order other
// commits may lie between them, and it does not cover these. order is as for markMerged.
func (h *history) findRangesOfMergedSummaries(ctx context.Context, r objects.Reader, order []*commit.Commit) error {
	for i, c := range order {
		if h.entries[i].flags&merged == 0 || c.Op != commit.Compress {
			continue
		}
		line, err := commit.Linearize(ctx, r, c.Parent())
		if err != nil {
			return err
		}
		if h.mergedSummaryRanges == nil {
			h.mergedSummaryRanges = map[objects.ID]map[objects.ID]bool{}
		}
		h.mergedSummaryRanges[c.ID] = idsBetween(line, c.First, c.Target)
	}
	return nil
}

// idsBetween returns the commits of a line from first to last.
func idsBetween(line []*commit.Commit, first, last objects.ID) map[objects.ID]bool {
	set := map[objects.ID]bool{}
	in := false
	for _, c := range line {
		if in = in || c.ID == first; in {
			set[c.ID] = true
		}
		if c.ID == last {
			break
		}
	}
	return set
}

// widenToIDs widens the range of the span so that it contains all of its ids. indexes has the
// indexes of the entries.
func (s *summarySpan) widenToIDs(indexes map[objects.ID]int) {
	for id := range s.ids {
		if at, ok := indexes[id]; ok {
			s.first, s.last = min(s.first, at), max(s.last, at)
		}
	}
}

// containsSpan reports whether the range of s contains the range of t.
func (s *summarySpan) containsSpan(t *summarySpan) bool {
	if s.ids != nil {
		return s.ids[t.entry.Change().First] && s.ids[t.entry.Change().Target]
	}
	return s.first <= t.first && t.last <= s.last
}
