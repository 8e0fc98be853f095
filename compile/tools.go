package compile

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

// How tool calls and results are paired. Providers refuse a call without its result and a result
// without its call, so both are sent or neither is. A result belongs to the last call before it with
// the same id in the same turn; an id may be used again. When one of a pair is left out, the other is
// left out too, unless it is pinned or only a summary hides its partner: then the partner is sent
// again. A call that has no result when its turn ends is left out, together with the reasoning that
// led to it; a call in the last turn is pending and stays. Calls that the provider ran itself need no
// result.

// isTool reports whether blocks of a kind are tool calls or results.
func isTool(k content.Kind) bool { return k == content.KindToolCall || k == content.KindToolResult }

// Reasons for leaving out a call without a result.
const (
	whyUnanswered = priority.Why("no result came before the next turn")
	whyIDReused   = priority.Why("its id is used again before a result came")
)

// Reasons for leaving out a result that answers no waiting call.
const (
	whyNoCall       = priority.Why("its call is not in this turn")
	whySecondResult = priority.Why("its call has a result already")
)

// IsUnmatchedResult reports whether this is the reason of a tool result that was left out because
// it answers no waiting call.
func IsUnmatchedResult(why priority.Why) bool { return why == whyNoCall || why == whySecondResult }

// IsUnansweredCall reports whether this is the reason of a tool call that was left out because it
// has no result.
func IsUnansweredCall(why priority.Why) bool { return why == whyUnanswered || why == whyIDReused }

// callsAndResultsOfSentTurns lists the calls and results of each turn in which at least one of
// them may be sent: the decision about one depends on the others.
func (h *history) callsAndResultsOfSentTurns() (list []*Entry) {
	for i := 0; i < len(h.tools); {
		end, sent := i, false
		for ; end < len(h.tools) && h.tools[end].Turn == h.tools[i].Turn; end++ {
			sent = sent || h.tools[end].InPrompt
		}
		if sent {
			list = append(list, h.tools[i:end]...)
		}
		i = end
	}
	return list
}

// firstEntryTurn returns the turn of the first entry.
func (h *history) firstEntryTurn() int32 {
	if len(h.entries) == 0 {
		return h.turns
	}
	return h.entries[0].Turn
}

// turnCalls matches the calls of one turn with their results.
type turnCalls struct {
	calls     map[string]*Entry
	reasoning map[*Entry][]*Entry // by call: the reasoning that led to it
	results   map[string]*Entry
}

// pairCalls sends a tool call and its result both or neither. A call without a result before the
// next turn is left out, with the reasoning that led to it; one in the last turn is pending and
// stays.
func (h *history) pairCalls() {
	if len(h.tools) == 0 {
		return
	}
	first := h.firstEntryTurn()
	turns := make([]turnCalls, h.turns-first+1)
	var reasoning []*Entry
	reasoningTurn := int32(0)
	for i := range h.entries {
		e := &h.entries[i]
		if e.Op != commit.Append {
			continue
		}
		t := &turns[e.Turn-first]
		if e.Turn != reasoningTurn {
			reasoning, reasoningTurn = nil, e.Turn
		}
		switch b := h.blockOf(e).(type) {
		case content.ToolCall:
			if t.calls == nil {
				*t = turnCalls{calls: map[string]*Entry{}, reasoning: map[*Entry][]*Entry{}, results: map[string]*Entry{}}
			}
			if again := t.calls[b.CallID]; again != nil && t.results[b.CallID] == nil && !h.blockOf(again).(content.ToolCall).Server {
				t.leaveOutCallAndReasoning(again, whyIDReused)
			}
			t.calls[b.CallID] = e
			delete(t.results, b.CallID) // the id is used again
			t.reasoning[e], reasoning = reasoning, nil
		case content.ToolResult:
			t.matchAndDecidePair(e, b.CallID)
		default:
			if e.Kind == content.KindReasoning {
				reasoning = append(reasoning, e)
			}
		}
	}
	for i := range turns {
		h.leaveOutUnansweredAndPurgedCalls(&turns[i], first+int32(i) == h.turns)
	}
}

// matchAndDecidePair matches a result with the call of an id, and decides whether both are sent or
// neither. A second result of the call is left out.
func (t *turnCalls) matchAndDecidePair(result *Entry, callID string) {
	call := t.calls[callID]
	if call == nil {
		result.leaveOut(whyNoCall)
		return
	}
	if t.results[callID] != nil {
		result.leaveOut(whySecondResult)
		return
	}
	t.results[callID] = result
	if call.Tombstone() != nil { // the content of the call was purged
		result.leaveOut("its call is left out")
		return
	}
	switch pinned := call.Level == priority.Pinned || result.Level == priority.Pinned; {
	case call.InPrompt == result.InPrompt:
	case pinned && call.InPrompt && result.Level != priority.Skip:
		result.putBack("its call is pinned")
	case pinned && result.InPrompt && call.Level != priority.Skip:
		call.putBack("its result is pinned")
	case call.InPrompt && !result.SummarizedBy().IsZero():
		result.putBack("its call is sent")
	case result.InPrompt && !call.SummarizedBy().IsZero():
		call.putBack("its result is sent")
	case call.InPrompt:
		call.leaveOut("its result is left out")
	default:
		result.leaveOut("its call is left out")
	}
}

// leaveOutUnansweredAndPurgedCalls leaves out the calls of a turn that have no result, except in the
// last turn, and the calls whose content was purged.
func (h *history) leaveOutUnansweredAndPurgedCalls(t *turnCalls, isLastTurn bool) {
	for id, call := range t.calls {
		if call.Tombstone() != nil {
			t.leaveOutCallAndReasoning(call, call.Why())
			continue
		}
		if t.results[id] != nil || isLastTurn || h.blockOf(call).(content.ToolCall).Server {
			continue
		}
		t.leaveOutCallAndReasoning(call, whyUnanswered)
	}
}

// leaveOutCallAndReasoning leaves out a call without a result, with the reasoning that led to it.
func (t *turnCalls) leaveOutCallAndReasoning(call *Entry, why priority.Why) {
	call.leaveOut(why)
	for _, e := range t.reasoning[call] {
		e.leaveOut("its call is left out")
	}
}

// redecideReasoningWithoutCalls decides again about reasoning that is sent only because of the
// tool calls of its turn, in turns where none of these calls is sent.
func (h *history) redecideReasoningWithoutCalls(o Options) {
	if !o.KeepToolReasoning {
		return
	}
	sent := map[int32]bool{}
	for _, e := range h.tools {
		sent[e.Turn] = sent[e.Turn] || e.InPrompt && e.Kind == content.KindToolCall
	}
	for i := range h.entries {
		e := &h.entries[i]
		if !e.InPrompt || e.Why() != priority.WhyToolTurn || sent[e.Turn] {
			continue
		}
		facts := e.policyFactsWithoutTurn(nil)
		facts.Explicit, facts.LastTurn = priority.Unset, e.Turn == h.reasoningTurn
		level, why := o.Policy.Decide(facts)
		e.Level = level
		e.setReason(why)
		if level == priority.Skip {
			e.InPrompt = false
		}
	}
}

// pendingCalls lists the calls of the last turn that have no result. A result answers the last call of
// its id before it.
func (h *history) pendingCalls() []Pending {
	var list []Pending
	for _, e := range h.tools {
		if e.Turn != h.turns {
			continue
		}
		switch b := h.blockOf(e).(type) {
		case content.ToolCall:
			if e.InPrompt && !b.Server {
				list = append(list, Pending{Commit: e.ID, Call: b})
			}
		case content.ToolResult:
			list = slices.DeleteFunc(list, func(p Pending) bool { return p.Call.CallID == b.CallID })
		}
	}
	return list
}
