package compile

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// How summaries apply. A summary is a commit with a range, from First to Target, and a scope: the
// dialogue, the reasoning or both. It covers the entries of its range that are sent with normal
// priority and fit the scope, except system blocks and what the open tool loop needs; these entries
// are left out, and the summary is sent before the first of them. A summary may cover earlier
// summaries whose whole range it contains. An annotation that is later than the summary wins over it:
// the annotated block is sent again. In a history with merges the range has other commits between
// its ends, so a summary that a merge brought has the ids of its range (summarySpan.ids).
// SummaryRange chooses the range for a new summary so that it cuts nothing in two.

// applySummaries leaves out the entries that each summary covers, beginning with the oldest
// summary, because a later one may cover an earlier one. A summary with priority skip covers
// nothing.
func (h *history) applySummaries() {
	if len(h.summaries) == 0 {
		return
	}
	indexes := make(map[objects.ID]int, len(h.entries))
	for i := range h.entries {
		indexes[h.entries[i].ID] = i
	}
	var earlier []*summarySpan
	for _, at := range h.summaries {
		s := &summarySpan{entry: &h.entries[at], sentAt: -1, ids: h.mergedSummaryRanges[h.entries[at].ID]}
		first, known := indexes[s.entry.Change().First]
		last, knownToo := indexes[s.entry.Change().Target]
		if !known || !knownToo || !s.entry.InPrompt {
			continue
		}
		s.first, s.last = first, last
		s.widenToIDs(indexes)
		h.hideCoveredAndPlace(s, earlier, func(annotation *commit.Commit) bool { return indexes[annotation.ID] > at })
		earlier = append(earlier, s)
	}
	for _, s := range earlier {
		at := &h.entries[s.sentAt]
		at.ensureExtra().summariesBefore = append(at.ensureExtra().summariesBefore, s.entry)
		s.entry.ensureExtra().turnOffset = at.Turn - s.entry.Turn
	}
}

// summarySpan is a summary and its range.
type summarySpan struct {
	entry       *Entry
	first, last int                 // indexes of the range
	sentAt      int                 // index of the entry before which the summary is sent
	ids         map[objects.ID]bool // the commits of the range; nil: all between first and last
}

// hideCoveredAndPlace leaves out the entries that s covers: blocks of its range, and earlier
// summaries of a part of the range. It sets s.sentAt to the first of them. A block whose annotation
// is later than s stays: isLater reports that.
func (h *history) hideCoveredAndPlace(s *summarySpan, earlier []*summarySpan, isLater func(annotation *commit.Commit) bool) {
	hide := func(e *Entry, sentAt int) {
		e.leaveOut(priority.Why("summary " + s.entry.ID.Short()))
		e.ensureExtra().summarizedBy = s.entry.ID
		e.flags &^= counted
		if s.sentAt < 0 || sentAt < s.sentAt {
			s.sentAt = sentAt
		}
	}
	for i := s.first; i <= s.last; i++ {
		e := &h.entries[i]
		if s.ids != nil && !s.ids[e.ID] {
			continue
		}
		note := h.annotations[e.ID]
		kept := note != nil && note.Priority != priority.Unset && isLater(note)
		if e.Op == commit.Append && !kept && canCover(s.entry.Change().Scope, e) {
			hide(e, i)
		}
	}
	for _, t := range earlier {
		if s.containsSpan(t) && canCover(s.entry.Change().Scope, t.entry) {
			hide(t.entry, t.sentAt)
		}
	}
	if s.sentAt < 0 {
		s.sentAt = s.first
	}
}

// canCover reports whether a summary of a scope covers an entry of its range.
func canCover(c commit.SummaryScope, e *Entry) bool {
	reasoning := e.Kind == content.KindReasoning
	demanded := e.Why() == priority.WhyOpenTurn || e.Why() == priority.WhyToolTurn && c == commit.ScopeReasoning
	return e.InPrompt && e.Level == priority.Normal && !demanded && e.Kind != content.KindSystem &&
		(c == commit.ScopeAll || (c == commit.ScopeReasoning) == reasoning)
}

// SummarizedBy lists the entries that a summary stands for, oldest first.
func (p *Prompt) SummarizedBy(summary objects.ID) []*Entry {
	var list []*Entry
	for i := range p.Entries {
		if p.Entries[i].SummarizedBy() == summary {
			list = append(list, &p.Entries[i])
		}
	}
	return list
}

// RangeError reports why a summary cannot cover a range.
type RangeError struct{ Why string }

// Error returns Why.
func (e *RangeError) Error() string { return e.Why }

// SummaryRange returns the indexes of the range of entries that a summary of first to last has to
// cover. The range is widened where it would cut a message, a pair of tool call and result, or an
// earlier summary, and narrowed where the entries at its ends cannot be left out. The error is a
// *[RangeError] for a range that reaches into an open tool loop, or in which no entry can be left
// out.
func (p *Prompt) SummaryRange(first, last objects.ID, c commit.SummaryScope) (from, to int, err error) {
	from, to = p.IndexOf(first), p.IndexOf(last)
	if from < 0 || to < 0 || from > to {
		return 0, 0, &RangeError{"it is not a range of this history"}
	}
	for {
		low, high := p.widenOnce(from, to)
		if low == from && high == to {
			break
		}
		from, to = low, high
	}
	for i := from; i <= to; i++ {
		if p.Entries[i].Why() == priority.WhyOpenTurn {
			return 0, 0, &RangeError{"it reaches into the open tool loop, which is never cut"}
		}
	}
	matters := func(e *Entry) bool {
		reasoning := e.Kind == content.KindReasoning && c != commit.ScopeDialogue
		return e.Op == commit.Append && (canCover(c, e) || reasoning || !e.SummarizedBy().IsZero())
	}
	for from <= to && !matters(&p.Entries[from]) {
		from++
	}
	for from <= to && !matters(&p.Entries[to]) {
		to--
	}
	if from > to {
		return 0, 0, &RangeError{"there is nothing in it that a summary could stand for"}
	}
	return from, to, nil
}

// SummaryMembers lists the entries between two indexes that a summary would cover: those that are
// sent, and earlier summaries of a part of the range.
func (p *Prompt) SummaryMembers(from, to int, c commit.SummaryScope) []*Entry {
	var list []*Entry
	inside := map[objects.ID]bool{}
	for i := from; i <= to; i++ {
		e := &p.Entries[i]
		inside[e.ID] = true
		if e.Op == commit.Append && canCover(c, e) {
			list = append(list, e)
		}
	}
	var earlier []*Entry
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Op == commit.Compress && inside[e.Change().First] && inside[e.Change().Target] && canCover(c, e) {
			earlier = append(earlier, e)
		}
	}
	return append(earlier, list...)
}

// OldTurns returns the range of all turns but the newest ones: the last turn, and those before it
// as long as they make up at most a quarter of the prompt together. last is zero when no older
// turn remains.
func (p *Prompt) OldTurns() (first, last objects.ID) {
	if len(p.Entries) == 0 {
		return first, last
	}
	newest := p.Entries[len(p.Entries)-1].Turn
	turns := make([]int, newest+1)
	for _, e := range p.Entries {
		if e.InPrompt && e.Op == commit.Append && e.Kind != content.KindSystem {
			turns[e.Turn] += int(e.Tokens)
		}
	}
	old, kept := newest-1, turns[newest]
	for old > 0 && p.Scale.Tokens(kept+turns[old])*4 <= p.Tokens.Effective {
		kept += turns[old]
		old--
	}
	for _, e := range p.Entries {
		if e.Turn <= old {
			last = e.ID
		}
	}
	return p.Entries[0].ID, last
}

// IndexOf returns the index of the entry of a commit; -1: there is none.
func (p *Prompt) IndexOf(id objects.ID) int {
	return slices.IndexFunc(p.Entries, func(e Entry) bool { return e.ID == id })
}

// widenOnce widens a range by the entries that must not be separated from those in it: of the same
// messages, of the same tool calls, and of the summaries that stand for some of them. The wider
// range may have to be widened again.
func (p *Prompt) widenOnce(from, to int) (low, high int) {
	low, high = from, to
	messages, calls := map[int32]bool{}, map[string]bool{}
	hidden := map[objects.ID]bool{}
	for i := from; i <= to; i++ {
		e := &p.Entries[i]
		hidden[p.outermostSummary(e)] = true
		if e.Op != commit.Append {
			continue
		}
		messages[e.message] = true
		if id := content.CallIDOf(e.Block); id != "" {
			calls[id] = true
		}
	}
	delete(hidden, objects.ID{})
	for id := range hidden {
		summary := p.Entries[p.IndexOf(id)].Change()
		low, high = min(low, p.IndexOf(summary.First)), max(high, p.IndexOf(summary.Target))
	}
	turns := [2]int32{p.Entries[from].Turn, p.Entries[to].Turn}
	for i := range p.Entries {
		e := &p.Entries[i]
		near := e.Turn >= turns[0] && e.Turn <= turns[1]
		joined := e.Op == commit.Append && (messages[e.message] || near && calls[content.CallIDOf(e.Block)])
		if joined {
			low, high = min(low, i), max(high, i)
		}
	}
	return low, high
}

// outermostSummary returns the summary that is sent in place of e; zero: none.
func (p *Prompt) outermostSummary(e *Entry) objects.ID {
	id := e.SummarizedBy()
	for !id.IsZero() {
		by := p.Entries[p.IndexOf(id)].SummarizedBy()
		if by.IsZero() {
			break
		}
		id = by
	}
	return id
}
