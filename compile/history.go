package compile

import (
	"context"
	"math"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// history is a chain on its way to become a prompt, or the end of one.
type history struct {
	base     *base // what comes before the entries; nil: nothing
	entries  []Entry
	turns    int // number of the last turn
	messages int
	thought  int // the last turn that has reasoning; -1: none has
	edits    map[objects.ID]*commit.Commit
	notes    map[objects.ID]*commit.Commit      // the last annotation of a commit
	ranges   map[objects.ID]map[objects.ID]bool // of a summary that a merge brought: its own range

	fitted *fitting // of a budget; nil: without one
	unread unread
	cut    bool // the budget leaves out a turn
}

// most is more commits than are made room for before they come.
const most = 1 << 20

// gather walks the chain once, to a base that is known or to the root, and numbers
// its turns. The last edit and the last annotation of a commit are those that count.
func gather(ctx context.Context, r objects.Reader, head objects.ID, known *memory) (*history, error) {
	h := newHistory()
	for c, err := range commit.Walk(ctx, r, head, 0) {
		if err != nil {
			return nil, err
		}
		if h.base = known.at(c.ID); h.base != nil {
			break
		}
		if c.Op == commit.Merge {
			if err := h.line(ctx, r, head); err != nil {
				return nil, err
			}
			break
		}
		if len(h.entries) == 64 { // it is no short one
			h.entries = slices.Grow(h.entries, int(min(c.Depth+1, most)))
		}
		h.entries = append(h.entries, Entry{Commit: c})
	}
	slices.Reverse(h.entries)
	h.number()
	return h, h.reasons(ctx, r)
}

func newHistory() *history {
	return &history{thought: -1, edits: map[objects.ID]*commit.Commit{}, notes: map[objects.ID]*commit.Commit{}}
}

// number counts turns and messages, and finds the edits and annotations that count.
func (h *history) number() {
	var before objects.ID
	if b := h.base; b != nil {
		h.turns, h.messages, h.thought, before = b.turns, b.messages, b.thought, b.tip
	}
	for i := range h.entries {
		e := &h.entries[i]
		c := e.Commit
		switch c.Op {
		case commit.Edit:
			h.edits[c.Target] = c
		case commit.Annotate:
			h.notes[c.Target] = c
		}
		if c.BeginsTurn() && i >= h.unread.known {
			h.turns++
		}
		if c.Says() && (c.Index == 0 || c.Parent() != before) {
			h.messages++
		}
		e.Turn, e.message = h.turns, h.messages
		if c.Op == commit.Append && c.Kind == content.KindReasoning {
			h.thought = e.Turn
		}
		before = c.ID
	}
}

// reasons reads the words of the annotations that count.
func (h *history) reasons(ctx context.Context, r objects.Reader) error {
	var list []*commit.Commit
	for _, n := range h.notes {
		list = append(list, n)
	}
	return commit.Load(ctx, r, list...)
}

// edit is the edit that counts for an entry; nil when there is none. One that gives
// a block its own words back, seal and all, is none.
func (h *history) edit(e *Entry) *commit.Commit {
	edit := h.edits[e.Commit.ID]
	if edit == nil || edit.Content == e.Commit.Content {
		return nil
	}
	return edit
}

// says is the commit whose content stands for an entry.
func (h *history) says(e *Entry) *commit.Commit {
	if edit := h.edit(e); edit != nil {
		return edit
	}
	return e.Commit
}

// block is what an entry says; nil when it was not loaded.
func (h *history) block(e *Entry) content.Block { return h.says(e).Block }

// decide gives every commit its level by the policy.
func (h *history) decide(o Options) {
	open := false
	merged := -1 // a merge closes what was open: none is made inside a tool loop
	for i := range h.entries {
		switch e := &h.entries[i]; {
		case e.Commit.Op == commit.Merge:
			merged, open = i, false
		case e.Commit.Op == commit.Append && isTool(e.Commit.Kind):
			open = open || e.Turn == h.turns
		}
	}
	for i := range h.entries {
		e := &h.entries[i]
		c := e.Commit
		if !c.Says() {
			of := c.Target
			if c.Op == commit.Merge {
				of = c.Second()
			}
			e.Level, e.Why = priority.Skip, priority.Why(c.Op.String()+"s "+of.Short())
			continue
		}
		facts := priority.Facts{
			Default:   c.Kind.Traits().Level,
			Explicit:  c.Priority,
			Reasoning: c.Kind == content.KindReasoning,
			OpenTurn:  open && i > merged && c.Op == commit.Append && e.Turn == h.turns && c.Role != content.NoRole && !o.DropOpen,
			LastTurn:  e.Turn == h.thought,
		}
		if n := h.notes[c.ID]; n != nil {
			facts.Explicit = n.Priority
			if n.Block != nil {
				facts.Reason = n.Block.String()
			}
		}
		e.Level, e.Why = o.Policy.Decide(facts)
		e.Sent = e.Level != priority.Skip
		if c.Role == content.NoRole && e.Sent {
			e.Sent, e.Why = false, "a "+priority.Why(c.Kind.String())+" is never sent"
		}
		if edit := h.edit(e); edit != nil {
			e.Edit = edit.ID
		}
		e.Tokens = Estimate(c.Kind.Weight(h.says(e).Size))
	}
}

// leaveOut takes an entry out of the prompt for a reason of its own.
func (e *Entry) leaveOut(why priority.Why) { e.Sent, e.Why = false, why }

// comeBack takes an entry into the prompt after all.
func (e *Entry) comeBack(why priority.Why) { e.Sent, e.Why, e.Hidden = true, why, objects.ID{} }

// load reads the blocks that stand for some entries.
func (h *history) load(ctx context.Context, r objects.Reader, entries []*Entry) error {
	list := make([]*commit.Commit, len(entries))
	for i, e := range entries {
		list[i] = h.says(e)
	}
	return commit.Load(ctx, r, list...)
}

// filter lists the entries with words of their own that are ok.
func (h *history) filter(ok func(*Entry) bool) []*Entry {
	n := 0
	for i := range h.entries {
		if e := &h.entries[i]; e.Commit.Says() && ok(e) {
			n++
		}
	}
	list := make([]*Entry, 0, n)
	for i := range h.entries {
		if e := &h.entries[i]; e.Commit.Says() && ok(e) {
			list = append(list, e)
		}
	}
	return list
}

func (h *history) systems() []*Entry {
	return h.filter(func(e *Entry) bool { return e.Sent && e.Commit.Kind == content.KindSystem })
}

func (h *history) sent() []*Entry { return h.filter(func(e *Entry) bool { return e.Sent }) }

// replaceSystems leaves out a named system block that a later one of its name
// replaces. The later one is sent in the place of the first.
func (h *history) replaceSystems() {
	places := map[string]*Entry{}
	for _, e := range h.systems() {
		t, ok := h.block(e).(content.Text)
		if !ok || t.Name == "" {
			continue
		}
		place := places[t.Name]
		if place == nil {
			places[t.Name], e.holds = e, e
			continue
		}
		place.holds.leaveOut(priority.Why("replaced by " + e.Commit.ID.Short()))
		place.holds, e.moved = e, true
	}
}

// sums is those of the estimates, as the policy has them.
func (h *history) sums() (t Tokens) {
	for i := range h.entries {
		t.count(&h.entries[i])
	}
	sent, thoughts := h.unread.tokens()
	t.Raw, t.Effective, t.HiddenReasoning, t.thoughts = t.Raw+sent+thoughts, t.Effective+sent, t.HiddenReasoning+thoughts, t.thoughts+thoughts
	return t
}

// fit drops whole turns from the oldest until the rest is within the budget.
func (h *history) fit(budget int) error {
	if budget <= 0 {
		return nil
	}
	turns := make([]priority.Turn, h.turns+1)
	turns[h.turns].Keep = true
	turns[0].Fixed = h.fitted.Overhead
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Commit.Says() || !e.Sent {
			continue
		}
		tokens := int(math.Ceil(h.fitted.tokens(i)))
		if e.Level == priority.Pinned || e.Commit.Kind == content.KindSystem {
			turns[e.Turn+e.sentIn].Fixed += tokens
		} else {
			turns[e.Turn+e.sentIn].Tokens += tokens
		}
	}
	drop, err := priority.Fit(budget, turns)
	if err != nil {
		return err
	}
	h.cut = h.turns > 0 && drop[1]
	for _, e := range h.sent() {
		if drop[e.Turn+e.sentIn] && e.Level != priority.Pinned && e.Commit.Kind != content.KindSystem {
			e.leaveOut("budget")
		}
	}
	return nil
}
