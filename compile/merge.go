package compile

import (
	"context"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// line reads the whole history in the order in which merges put it.
// What a merge brings is read as if it had been said there; it begins a message,
// wherever it was forked.
func (h *history) line(ctx context.Context, r objects.Reader, head objects.ID) error {
	line, err := commit.Linearize(ctx, r, head)
	if err != nil {
		return err
	}
	h.entries = make([]Entry, len(line))
	var before objects.ID
	for i, c := range line {
		e := &h.entries[i]
		e.take(c, nil)
		if c.Parent() != before {
			e.place |= apart
		}
		before = c.ID
	}
	return h.brought(ctx, r, head, line)
}

// brought notes what merges brought, and finds the ranges of the summaries among that. Where a summary was
// made its range was a part of the line; here other commits may lie between, for
// which it does not stand.
func (h *history) brought(ctx context.Context, r objects.Reader, head objects.ID, whole []*commit.Commit) error {
	own := head // the commits that head has by first parent
	for i, c := range slices.Backward(whole) {
		if c.ID == own {
			own = c.Parent()
			continue
		}
		h.entries[i].place |= brought
		if c.Op != commit.Compress {
			continue
		}
		line, err := commit.Linearize(ctx, r, c.Parent())
		if err != nil {
			return err
		}
		if h.ranges == nil {
			h.ranges = map[objects.ID]map[objects.ID]bool{}
		}
		h.ranges[c.ID] = between(line, c.First, c.Target)
	}
	return nil
}

// between is the commits of a line from one to another.
func between(line []*commit.Commit, first, last objects.ID) map[objects.ID]bool {
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

// stretch makes the span reach from the first to the last commit of its range that
// the history has.
func (s *span) stretch(places map[objects.ID]int) {
	for id := range s.only {
		if at, ok := places[id]; ok {
			s.first, s.last = min(s.first, at), max(s.last, at)
		}
	}
}

// has tells whether the range of s has that of another summary in it.
func (s *span) has(t *span) bool {
	if s.only != nil {
		return s.only[t.entry.Change().First] && s.only[t.entry.Change().Target]
	}
	return s.first <= t.first && t.last <= s.last
}
