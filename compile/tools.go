package compile

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

func isTool(k content.Kind) bool { return k == content.KindToolCall || k == content.KindToolResult }

// Why a call is left out to which no result came.
const (
	whyUnanswered = priority.Why("no result came before the next turn")
	whyUsedAgain  = priority.Why("its id is used again before a result came")
)

// Why a result is left out that answers no call which waits for one.
const (
	whyNoCall = priority.Why("its call is not in this turn")
	whySecond = priority.Why("its call has a result already")
)

// IsUnmatchedResult reports whether the result of a tool is left out for this reason because it
// answers no call that waits for one.
func IsUnmatchedResult(why priority.Why) bool { return why == whyNoCall || why == whySecond }

// IsUnansweredCall reports whether a tool call is left out for this reason because no result
// came.
func IsUnansweredCall(why priority.Why) bool { return why == whyUnanswered || why == whyUsedAgain }

// toolTurns lists the calls and results of every turn in which one of them may be
// sent: whether it may depends on the others.
func (h *history) toolTurns() (list []*Entry) {
	for i := 0; i < len(h.tools); {
		end, sent := i, false
		for ; end < len(h.tools) && h.tools[end].Turn == h.tools[i].Turn; end++ {
			sent = sent || h.tools[end].Sent
		}
		if sent {
			list = append(list, h.tools[i:end]...)
		}
		i = end
	}
	return list
}

// firstTurn is the turn in which the entries begin.
func (h *history) firstTurn() int32 {
	if len(h.entries) == 0 {
		return h.turns
	}
	return h.entries[0].Turn
}

// pairing is the state of one turn while its calls are matched with results.
type pairing struct {
	calls   map[string]*Entry
	owned   map[*Entry][]*Entry // the thoughts that led to a call
	results map[string]*Entry
}

// pair makes a tool call and its result be sent both or none. A call that
// nothing answered before the next turn is left out, with the thoughts that led
// to it; one in the last turn is pending and stays.
func (h *history) pair() {
	if len(h.tools) == 0 {
		return
	}
	first := h.firstTurn()
	turns := make([]pairing, h.turns-first+1)
	var thoughts []*Entry
	thinking := int32(0) // the turn of thoughts
	for i := range h.entries {
		e := &h.entries[i]
		if e.Op != commit.Append {
			continue
		}
		t := &turns[e.Turn-first]
		if e.Turn != thinking {
			thoughts, thinking = nil, e.Turn
		}
		switch b := h.block(e).(type) {
		case content.ToolCall:
			if t.calls == nil {
				*t = pairing{calls: map[string]*Entry{}, owned: map[*Entry][]*Entry{}, results: map[string]*Entry{}}
			}
			if again := t.calls[b.CallID]; again != nil && t.results[b.CallID] == nil && !h.block(again).(content.ToolCall).Server {
				t.leaveOut(again, whyUsedAgain)
			}
			t.calls[b.CallID] = e
			delete(t.results, b.CallID) // an id that is used again
			t.owned[e], thoughts = thoughts, nil
		case content.ToolResult:
			h.match(t, e, b.CallID)
		default:
			if e.Kind == content.KindReasoning {
				thoughts = append(thoughts, e)
			}
		}
	}
	for i := range turns {
		h.unanswered(&turns[i], first+int32(i) == h.turns)
	}
}

func (h *history) match(t *pairing, result *Entry, id string) {
	call := t.calls[id]
	if call == nil {
		if result.Sent {
			result.leaveOut(whyNoCall)
		}
		return
	}
	if t.results[id] != nil {
		if result.Sent {
			result.leaveOut(whySecond)
		}
		return
	}
	t.results[id] = result
	if call.Tombstone() != nil { // nobody can say any more what the result answers
		if result.Sent {
			result.leaveOut("its call is left out")
		}
		return
	}
	switch pinned := call.Level == priority.Pinned || result.Level == priority.Pinned; {
	case call.Sent == result.Sent:
	case pinned && call.Sent && result.Level != priority.Skip:
		result.comeBack("its call is pinned")
	case pinned && result.Sent && call.Level != priority.Skip:
		call.comeBack("its result is pinned")
	case call.Sent && !result.SummarizedBy().IsZero():
		result.comeBack("its call is sent")
	case result.Sent && !call.SummarizedBy().IsZero():
		call.comeBack("its result is sent")
	case call.Sent:
		call.leaveOut("its result is left out")
	default:
		result.leaveOut("its call is left out")
	}
}

func (h *history) unanswered(t *pairing, last bool) {
	for id, call := range t.calls {
		if call.Tombstone() != nil {
			t.leaveOut(call, call.Why())
			continue
		}
		if t.results[id] != nil || last || h.block(call).(content.ToolCall).Server {
			continue
		}
		t.leaveOut(call, whyUnanswered)
	}
}

// leaveOut leaves out a call without a result, with the thoughts that led to it.
func (t *pairing) leaveOut(call *Entry, why priority.Why) {
	if call.Sent {
		call.leaveOut(why)
	}
	for _, thought := range t.owned[call] {
		if thought.Sent {
			thought.leaveOut("its call is left out")
			thought.Block = nil // what is not sent has none; it may have been loaded ahead
		}
	}
}

// releaseReasoning decides anew about reasoning that is sent only because of the
// tool calls of its turn, where none of these calls is sent after all.
func (h *history) releaseReasoning(o Options) {
	if !o.KeepToolReasoning {
		return
	}
	sent := map[int32]bool{}
	for _, e := range h.tools {
		sent[e.Turn] = sent[e.Turn] || e.Sent && e.Kind == content.KindToolCall
	}
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Sent || e.Why() != priority.WhyToolTurn || sent[e.Turn] {
			continue
		}
		facts := e.facts(nil)
		facts.Explicit, facts.LastTurn = priority.Unset, e.Turn == h.thought
		level, why := o.Policy.Decide(facts)
		e.Level = level
		if e.because(why); level == priority.Skip {
			e.Sent, e.Block = false, nil // it may have been loaded ahead
		}
	}
}

// pending lists the calls of the last turn that wait for a result. A result answers
// the last call of its id before it.
func (h *history) pending() []Pending {
	var list []Pending
	for _, e := range h.tools {
		if e.Turn != h.turns {
			continue
		}
		switch b := h.block(e).(type) {
		case content.ToolCall:
			if e.Sent && !b.Server {
				list = append(list, Pending{Commit: e.ID, Call: b})
			}
		case content.ToolResult:
			list = slices.DeleteFunc(list, func(p Pending) bool { return p.Call.CallID == b.CallID })
		}
	}
	return list
}
