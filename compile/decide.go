package compile

import (
	"math"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

// openLoopLowerBound returns an index before which no entry belongs to the open tool loop, which is
// the last turn, if it has tool calls; len(h.entries) when no loop is open. A loop stays open when the
// model has answered, because providers want the reasoning of the turn back until the next user message.
// A merge closes it, because merges are not made while calls or results wait for an answer.
func (h *history) openLoopLowerBound() int {
	none := len(h.entries)
	if len(h.tools) == 0 || h.tools[len(h.tools)-1].Turn != h.turns {
		return none
	}
	tools := false
	for i := none - 1; i >= 0 && h.entries[i].Turn == h.turns; i-- {
		e := &h.entries[i]
		if e.Op == commit.Merge && tools {
			return i + 1
		}
		if e.Op == commit.Merge {
			return none
		}
		tools = tools || e.Op == commit.Append && isTool(e.Kind)
	}
	return 0
}

// decideLevels sets the level, the bytes and the flags of every entry. The policy decides on the
// level.
func (h *history) decideLevels(o Options) {
	open := h.openLoopLowerBound()
	tools := h.tools // of this turn and later ones
	for i := range h.entries {
		e := &h.entries[i]
		e.flags &^= counted | inToolTurn
		if !e.AddsBlock() {
			of := e.Change().Target
			if e.Op == commit.Merge {
				of = e.Change().SecondParent()
			}
			e.Level = priority.Skip
			e.setReason(priority.Why(e.Op.String() + "s " + of.Short()))
			continue
		}
		for len(tools) > 0 && tools[0].Turn < e.Turn {
			tools = tools[1:]
		}
		hasTools := len(tools) > 0 && tools[0].Turn == e.Turn
		note := h.annotations[e.ID]
		facts := e.policyFactsWithoutTurn(note)
		facts.OpenTurn = i >= open && e.Op == commit.Append && e.Turn == h.turns && e.Role != content.NoRole && !o.DropOpenReasoning
		facts.ToolTurn = o.KeepToolReasoning && hasTools
		facts.LastTurn = e.Turn == h.reasoningTurn
		level, reason := o.Policy.Decide(facts)
		e.Level = level
		e.setReason(reason)
		e.InPrompt = e.Level != priority.Skip
		if e.InPrompt && (e.Role == content.NoRole || e.Kind.Traits().Private) {
			e.leaveOut("a " + priority.Why(e.Kind.String()) + " is never sent")
		}
		h.setPromptBytesAndFlags(e, e.Priority != priority.Unset || note != nil && note.Priority != priority.Unset, hasTools)
	}
}

// setPromptBytesAndFlags sets the bytes, the tokens and the flags of an entry whose level is decided.
// explicitLevel tells that its commit or an annotation set the level.
func (h *history) setPromptBytesAndFlags(e *Entry, explicitLevel, turnHasTools bool) {
	size := int64(e.Size)
	if edit := h.editOf(e); edit != nil {
		e.ensureExtra().editedBy, size = edit.ID, edit.Size
	}
	bytes := e.Kind.PromptBytes(size)
	e.promptBytes, e.Tokens = int32(min(bytes, math.MaxInt32)), int32(min(Estimate(bytes), math.MaxInt32))
	if e.InPrompt && (explicitLevel || !e.isReasoning()) {
		e.flags |= counted
	}
	if turnHasTools && e.isReasoning() {
		e.flags |= inToolTurn
	}
}

// policyFactsWithoutTurn returns the input of the policy for an entry, without the fields about its
// turn. note is the annotation of the entry; it may be nil.
func (e *Entry) policyFactsWithoutTurn(note *commit.Commit) priority.Facts {
	facts := priority.Facts{Default: e.Kind.Traits().Level, Explicit: e.Priority, Reasoning: e.Kind == content.KindReasoning}
	if note != nil {
		facts.Explicit = note.Priority
		if note.Block != nil {
			facts.Reason = note.Block.String()
		}
	}
	return facts
}
