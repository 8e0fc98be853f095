package compile

import (
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/hugepage"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// history holds the entries of a history while the passes decide which of them are sent. It
// begins after the prefix of a cached prompt, if there is one.
type history struct {
	cache   *promptCache // where the prompt will be cached; nil: nowhere
	from    walkStop     // the cached prefix before the entries; zero: none
	entries []Entry

	turns           int32 // number of the last turn
	messages        int   // number of the last message
	reasoningTurn   int32 // the last turn that has reasoning; -1: none has
	reasoningBefore int32 // the last turn that has reasoning, without the last turn

	edits               map[objects.ID]*commit.Commit      // the last edit of a commit, by its target
	annotations         map[objects.ID]*commit.Commit      // the last annotation of a commit, likewise
	mergedSummaryRanges map[objects.ID]map[objects.ID]bool // the ranges of summaries that a merge brought

	systems   []*Entry // system blocks
	tools     []*Entry // tool calls and results
	summaries []int    // indexes of summaries

	scale  Scale // of a budget
	purged bool  // some of the loaded content is purged
}

// collect reads the entries of a history, from head back to a stop or to the root, and numbers
// their turns.
func collect(ctx context.Context, r objects.Reader, head objects.ID, stops []walkStop) (*history, error) {
	h := newHistory()
	metMerge, err := h.walkUnlessMerge(ctx, r, head, stops)
	if err == nil && metMerge {
		err = h.linearize(ctx, r, head)
	}
	if err != nil {
		return nil, err
	}
	h.numberAndGroupByKind()
	return h, h.loadAnnotationBlocks(ctx, r)
}

const (
	firstEntries = 4       // entries to allocate at first: a walk to a stop is mostly shorter
	maxReserve   = 1 << 20 // most entries to allocate before they are read; a commit may lie about its depth
)

// capWithSpare returns the capacity for a list of n elements, with spare capacity for the next prompt.
func capWithSpare(n int) int { return n + n/32 + 8 }

// walkUnlessMerge makes the entries of the first-parent history of head, oldest first. At a merge it
// ends without entries and reports the merge: then linearize makes the entries.
func (h *history) walkUnlessMerge(ctx context.Context, r objects.Reader, head objects.ID, stops []walkStop) (metMerge bool, err error) {
	var list []Entry // newest first
	var origin *objects.ID
	for c, err := range commit.WalkReuse(ctx, r, head, 0) {
		if err != nil {
			return false, err
		}
		if c.Op == commit.Merge {
			return true, nil
		}
		if afterPrefix, ok := h.beginAtStop(c.ID, stops); ok {
			for i := len(afterPrefix) - 1; i >= 0; i-- {
				list = append(list, afterPrefix[i].undecidedCopyWithoutBlock())
			}
			break
		}
		if len(list) == cap(list) {
			more := max(firstEntries, len(list))
			if len(stops) == 0 && len(list) > 0 {
				more = int(min(c.Depth+1, maxReserve))
			}
			list = slices.Grow(list, capWithSpare(more))
			hugepage.Advise(list)
		}
		list = append(list, Entry{})
		list[len(list)-1].setCommit(c, origin)
		origin = list[len(list)-1].origin
	}
	slices.Reverse(list)
	h.entries = list
	return false, nil
}

// beginAtStop sets h.from to the one of stops that is at commit id, and reports whether there is one.
// afterPrefix is as [walkStop.stopsAt] returns it.
func (h *history) beginAtStop(id objects.ID, stops []walkStop) (afterPrefix []Entry, ok bool) {
	for i := range stops {
		if afterPrefix, ok = stops[i].stopsAt(id); ok {
			h.from = stops[i]
			break
		}
	}
	return afterPrefix, ok
}

func newHistory() *history {
	return &history{reasoningTurn: -1, edits: map[objects.ID]*commit.Commit{}, annotations: map[objects.ID]*commit.Commit{}}
}

// numberAndGroupByKind numbers turns and messages, and collects the entries that later passes look
// for. Of the edits and annotations of a commit, the last one is in effect.
func (h *history) numberAndGroupByKind() {
	if p := h.from.prefix; p != nil {
		h.turns, h.messages, h.reasoningTurn = p.turns, p.lastMessage, p.reasoningTurn
	}
	h.reasoningBefore = h.reasoningTurn
	for i := range h.entries {
		e := &h.entries[i]
		switch e.Op {
		case commit.Edit:
			h.edits[e.Change().Target] = e.Change()
		case commit.Annotate:
			h.annotations[e.Change().Target] = e.Change()
		case commit.Compress:
			h.summaries = append(h.summaries, i)
		}
		if e.beginsTurn() {
			h.turns++
			h.reasoningBefore = h.reasoningTurn
		}
		if e.AddsBlock() && (e.Index == 0 || e.flags&gapBefore != 0) {
			h.messages++
		}
		e.Turn, e.message = h.turns, int32(h.messages)
		if e.Op != commit.Append {
			continue
		}
		switch {
		case e.Kind == content.KindReasoning:
			h.reasoningTurn = e.Turn
		case e.Kind == content.KindSystem:
			h.systems = append(h.systems, e)
		case isTool(e.Kind):
			h.tools = append(h.tools, e)
		}
	}
}

// loadAnnotationBlocks loads the blocks of the annotations that are in effect: these are the reasons.
func (h *history) loadAnnotationBlocks(ctx context.Context, r objects.Reader) error {
	var list []*commit.Commit
	for _, n := range h.annotations {
		list = append(list, n)
	}
	return commit.Load(ctx, r, list...)
}

// editOf returns the last edit of an entry; nil: none. An edit that restores the original
// content does not count.
func (h *history) editOf(e *Entry) *commit.Commit {
	edit := h.edits[e.ID]
	if edit == nil || edit.ContentID == e.Content {
		return nil
	}
	return edit
}

// blockOf returns the block that is sent for an entry; nil: it was not loaded.
func (h *history) blockOf(e *Entry) content.Block {
	block := e.Block
	if edit := h.editOf(e); edit != nil {
		block = edit.Block
	}
	if result, ok := block.(content.ToolResult); ok && h.tombstoneOf(e) != nil {
		result.Text = PurgedPlaceholder
		return result
	}
	return block
}

// load reads the blocks that are sent for some entries, unless they are loaded.
func (h *history) load(ctx context.Context, r objects.Reader, entries []*Entry) error {
	if h.from.prefix != nil {
		entries = h.from.reuseBlocks(entries)
	}
	if len(h.edits) > 0 {
		var own []*Entry
		var edits []*commit.Commit
		for _, e := range entries {
			if edit := h.editOf(e); edit != nil {
				edits = append(edits, edit)
			} else {
				own = append(own, e)
			}
		}
		if err := commit.Load(ctx, r, edits...); err != nil {
			return err
		}
		h.purged = h.purged || slices.ContainsFunc(edits, func(c *commit.Commit) bool { return c.Tombstone != nil })
		entries = own
	}
	purged, err := load(ctx, r, entries)
	h.purged = h.purged || purged
	return err
}

// sentSystems lists the system blocks that are sent.
func (h *history) sentSystems() []*Entry {
	return slices.DeleteFunc(slices.Clone(h.systems), func(e *Entry) bool { return !e.InPrompt })
}

// countSent returns how many entries are sent.
func (h *history) countSent() (n int) {
	for i := range h.entries {
		if e := &h.entries[i]; e.InPrompt && e.AddsBlock() {
			n++
		}
	}
	return n
}

// sentEntries lists the entries that are sent.
func (h *history) sentEntries() []*Entry {
	list := make([]*Entry, 0, len(h.entries))
	for i := range h.entries {
		if e := &h.entries[i]; e.InPrompt && e.AddsBlock() {
			list = append(list, e)
		}
	}
	return list
}

// replaceNamedSystems leaves out each named system block that a later one of the same name replaces.
// The last one is sent at the position of the first.
func (h *history) replaceNamedSystems() {
	first := map[string]*Entry{}
	for _, e := range h.sentSystems() {
		t, ok := h.blockOf(e).(content.Text)
		if !ok || t.Name == "" {
			continue
		}
		at := first[t.Name]
		if at == nil {
			first[t.Name], e.ensureExtra().replacement = e, e
			continue
		}
		at.extra.replacement.leaveOut(priority.Why("replaced by " + e.ID.Short()))
		at.extra.replacement.flags &^= counted
		at.extra.replacement = e
		e.flags |= relocated
	}
}

// sumBytes returns the sums of the bytes of all entries.
func (h *history) sumBytes() (s byteSums) {
	for i := range h.entries {
		s.addBytes(&h.entries[i], 1)
	}
	return s
}

// dropOldestTurns leaves out whole turns, the oldest first, until the rest is within the budget.
func (h *history) dropOldestTurns(budget int) error {
	if budget <= 0 {
		return nil
	}
	turns := make([]priority.Turn, h.turns+1)
	turns[h.turns].Keep = true
	for i := range h.entries {
		e := &h.entries[i]
		if !e.AddsBlock() || !e.InPrompt {
			continue
		}
		tokens := int(e.Tokens)
		if e.Level == priority.Pinned || e.Kind == content.KindSystem {
			turns[e.sentTurn()].Fixed += tokens
		} else {
			turns[e.sentTurn()].Tokens += tokens
		}
	}
	drop, err := priority.Fit(h.scale.largestEstimate(budget), turns)
	if over := (*priority.OverBudgetError)(nil); errors.As(err, &over) {
		return &priority.OverBudgetError{Budget: budget, Fixed: h.scale.Tokens(over.Fixed)}
	}
	if err != nil {
		return err
	}
	for _, e := range h.sentEntries() {
		if drop[e.sentTurn()] && e.Level != priority.Pinned && e.Kind != content.KindSystem {
			e.leaveOut(whyBudget)
		}
	}
	return nil
}
