package compile

import (
	"math"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

// openFrom is the place from which on what is of the last turn belongs to a tool loop
// that is open; behind all entries: none is. A merge closes it: none is made inside one.
func (h *history) openFrom() int {
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

// decide gives every commit its level by the policy.
func (h *history) decide(o Options) {
	open := h.openFrom()
	tools := h.tools // of this turn and later ones
	for i := range h.entries {
		e := &h.entries[i]
		e.place &^= counted | inToolTurn
		if !e.AddsBlock() {
			of := e.Change().Target
			if e.Op == commit.Merge {
				of = e.Change().SecondParent()
			}
			e.Level = priority.Skip
			e.because(priority.Why(e.Op.String() + "s " + of.Short()))
			continue
		}
		for len(tools) > 0 && tools[0].Turn < e.Turn {
			tools = tools[1:]
		}
		hasTools := len(tools) > 0 && tools[0].Turn == e.Turn
		note := h.note(e)
		facts := e.facts(note)
		facts.OpenTurn = i >= open && e.Op == commit.Append && e.Turn == h.turns && e.Role != content.NoRole && !o.DropOpenReasoning
		facts.ToolTurn = o.KeepToolReasoning && hasTools
		facts.LastTurn = e.Turn == h.thought
		level, reason := o.Policy.Decide(facts)
		e.Level = level
		e.because(reason)
		e.Sent = e.Level != priority.Skip
		if e.Role == content.NoRole && e.Sent {
			e.leaveOut("a " + priority.Why(e.Kind.String()) + " is never sent")
		}
		h.weigh(e, e.Priority != priority.Unset || note != nil && note.Priority != priority.Unset, hasTools)
	}
}

// weigh counts an entry that is decided: explicit is whether a person said its level, and
// tools whether its turn has tool calls.
func (h *history) weigh(e *Entry, explicit, tools bool) {
	size := int64(e.Size)
	if edit := h.edit(e); edit != nil {
		e.few().edit, size = edit.ID, edit.Size
	}
	weight := e.Kind.PromptBytes(size)
	e.weight, e.Tokens = int32(min(weight, math.MaxInt32)), int32(min(Estimate(weight), math.MaxInt32))
	if e.Sent && (explicit || !e.isThought()) {
		e.place |= counted
	}
	if tools && e.isThought() {
		e.place |= inToolTurn
	}
}

// note is the annotation that counts for an entry; nil: there is none.
func (h *history) note(e *Entry) *commit.Commit {
	if len(h.notes) == 0 {
		return nil
	}
	return h.notes[e.ID]
}

// facts is what the policy asks about an entry, but for its turn.
func (e *Entry) facts(note *commit.Commit) priority.Facts {
	facts := priority.Facts{Default: e.Kind.Traits().Level, Explicit: e.Priority, Reasoning: e.Kind == content.KindReasoning}
	if note != nil {
		facts.Explicit = note.Priority
		if note.Block != nil {
			facts.Reason = note.Block.String()
		}
	}
	return facts
}
