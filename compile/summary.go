package compile

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// summaries lets each summary stand for its range, the oldest first: a later one
// may stand for an earlier one. One that is skipped stands for nothing.
func (h *history) summaries() {
	if len(h.compresses) == 0 {
		return
	}
	places := make(map[objects.ID]int, len(h.entries))
	for i := range h.entries {
		places[h.entries[i].ID] = i
	}
	var standing []*span
	for _, at := range h.compresses {
		s := &span{entry: &h.entries[at], place: -1, only: h.ranges[h.entries[at].ID]}
		first, known := places[s.entry.Change().First]
		last, knownToo := places[s.entry.Change().Target]
		if !known || !knownToo || !s.entry.Sent {
			continue
		}
		s.first, s.last = first, last
		s.stretch(places)
		h.standIn(s, standing, func(note *commit.Commit) bool { return places[note.ID] > at })
		standing = append(standing, s)
	}
	for _, s := range standing {
		place := &h.entries[s.place]
		place.few().ahead = append(place.few().ahead, s.entry)
		s.entry.few().sentIn = place.Turn - s.entry.Turn
	}
}

// span is a summary and where its range lies.
type span struct {
	entry       *Entry
	first, last int
	place       int                 // where the summary is sent
	only        map[objects.ID]bool // the range, where first and last do not say it; nil: they do
}

// standIn leaves out what s stands for: the blocks of its range, and summaries
// that stand for a part of it. What an annotation after s speaks of stays.
func (h *history) standIn(s *span, standing []*span, after func(note *commit.Commit) bool) {
	hide := func(e *Entry, place int) {
		e.leaveOut(priority.Why("summary " + s.entry.ID.Short()))
		e.few().hidden = s.entry.ID
		e.place &^= counted
		if s.place < 0 || place < s.place {
			s.place = place
		}
	}
	for i := s.first; i <= s.last; i++ {
		e := &h.entries[i]
		if s.only != nil && !s.only[e.ID] {
			continue
		}
		note := h.notes[e.ID]
		kept := note != nil && note.Priority != priority.Unset && after(note)
		if e.Op == commit.Append && !kept && covers(s.entry.Change().Scope, e) {
			hide(e, i)
		}
	}
	for _, t := range standing {
		if s.has(t) && covers(s.entry.Change().Scope, t.entry) {
			hide(t.entry, t.place)
		}
	}
	if s.place < 0 {
		s.place = s.first
	}
}

// covers tells whether a summary stands for an entry of its range.
func covers(c commit.SummaryScope, e *Entry) bool {
	thought := e.Kind == content.KindReasoning
	demanded := e.Why() == priority.WhyOpenTurn || e.Why() == priority.WhyToolTurn && c == commit.ScopeReasoning
	return e.Sent && e.Level == priority.Normal && !demanded && e.Kind != content.KindSystem &&
		(c == commit.ScopeAll || (c == commit.ScopeReasoning) == thought)
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

// RangeError says that no summary can stand for a range.
type RangeError struct{ Why string }

// Error says why.
func (e *RangeError) Error() string { return e.Why }

// SummaryRange finds the commits that a summary of first to last would have to stand
// for: the same, or more where a message, a tool call and its result, or an
// earlier summary would be cut, and less where its ends stay as they are. A range that reaches into an open tool loop, or
// has nothing that could be left out, is a *[RangeError].
func (p *Prompt) SummaryRange(first, last objects.ID, c commit.SummaryScope) (from, to int, err error) {
	from, to = p.IndexOf(first), p.IndexOf(last)
	if from < 0 || to < 0 || from > to {
		return 0, 0, &RangeError{"it is no range of this history"}
	}
	for {
		wider := p.widen(from, to)
		if wider == [2]int{from, to} {
			break
		}
		from, to = wider[0], wider[1]
	}
	for i := from; i <= to; i++ {
		if p.Entries[i].Why() == priority.WhyOpenTurn {
			return 0, 0, &RangeError{"it reaches into the open tool loop, which is never cut"}
		}
	}
	matters := func(e *Entry) bool {
		thought := e.Kind == content.KindReasoning && c != commit.ScopeDialogue
		return e.Op == commit.Append && (covers(c, e) || thought || !e.SummarizedBy().IsZero())
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

// SummaryMembers lists the entries between two indexes that a summary would stand for:
// those that are sent, and earlier summaries of a part of the range.
func (p *Prompt) SummaryMembers(from, to int, c commit.SummaryScope) []*Entry {
	var list []*Entry
	inside := map[objects.ID]bool{}
	for i := from; i <= to; i++ {
		e := &p.Entries[i]
		inside[e.ID] = true
		if e.Op == commit.Append && covers(c, e) {
			list = append(list, e)
		}
	}
	var earlier []*Entry
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Op == commit.Compress && inside[e.Change().First] && inside[e.Change().Target] && covers(c, e) {
			earlier = append(earlier, e)
		}
	}
	return append(earlier, list...)
}

// OldTurns is the range of all turns but the newest ones, as many of these as take
// a quarter of the prompt, and at least one. last is zero when there is none.
func (p *Prompt) OldTurns() (first, last objects.ID) {
	if len(p.Entries) == 0 {
		return first, last
	}
	newest := p.Entries[len(p.Entries)-1].Turn
	turns := make([]int, newest+1)
	for _, e := range p.Entries {
		if e.Sent && e.Op == commit.Append && e.Kind != content.KindSystem {
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

// IndexOf is the place of a commit among the entries, -1 when it is none of them.
func (p *Prompt) IndexOf(id objects.ID) int {
	return slices.IndexFunc(p.Entries, func(e Entry) bool { return e.ID == id })
}

// widen takes in what must not be apart from what lies in a range.
func (p *Prompt) widen(from, to int) [2]int {
	low, high := from, to
	messages, calls := map[int32]bool{}, map[string]bool{}
	hidden := map[objects.ID]bool{}
	for i := from; i <= to; i++ {
		e := &p.Entries[i]
		hidden[p.outermost(e)] = true
		if e.Op != commit.Append {
			continue
		}
		messages[e.message] = true
		if id := callID(e.Block); id != "" {
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
		joined := e.Op == commit.Append && (messages[e.message] || near && calls[callID(e.Block)])
		if joined {
			low, high = min(low, i), max(high, i)
		}
	}
	return [2]int{low, high}
}

// outermost is the summary that is sent where e is not; zero: none stands for e.
func (p *Prompt) outermost(e *Entry) objects.ID {
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

func callID(b content.Block) string {
	switch b := b.(type) {
	case content.ToolCall:
		return b.CallID
	case content.ToolResult:
		return b.CallID
	}
	return ""
}
