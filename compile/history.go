package compile

import (
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// history is a chain on its way to become a prompt, or the end of one.
type history struct {
	memory   *memory // where the prompt will be remembered; nil: nowhere
	base     *base   // what comes before the entries; nil: nothing
	entries  []Entry
	turns    int32 // number of the last turn
	messages int
	thought  int32 // the last turn that has reasoning; -1: none has
	then     int32 // thought, as it was before the last turn
	edits    map[objects.ID]*commit.Commit
	notes    map[objects.ID]*commit.Commit      // the last annotation of a commit
	ranges   map[objects.ID]map[objects.ID]bool // of a summary that a merge brought: its own range

	systems    []*Entry // system blocks
	tools      []*Entry // tool calls and results
	compresses []int    // summaries, by place

	scale  Scale // of a budget
	erased bool  // of what was loaded some is
}

// gather walks the chain once, to a base that is known or to the root, and numbers
// its turns. The last edit and the last annotation of a commit are those that count.
func gather(ctx context.Context, r objects.Reader, head objects.ID, known *memory) (*history, error) {
	h := newHistory()
	l := listing{whole: known.empty()}
	for c, err := range commit.WalkReuse(ctx, r, head, 0) {
		if err != nil {
			return nil, err
		}
		var behind []Entry
		if h.base, behind = known.at(c.ID); h.base != nil {
			l.again(behind)
			break
		}
		if c.Op == commit.Merge {
			if err := h.line(ctx, r, head); err != nil {
				return nil, err
			}
			h.number()
			return h, h.reasons(ctx, r)
		}
		l.before(c)
	}
	h.entries = l.entries()
	h.number()
	return h, h.reasons(ctx, r)
}

// listing makes the entries of a line from its end.
type listing struct {
	list  []Entry // from its end on
	free  int     // before them
	whole bool    // it goes to the root
}

// shortLine is more commits than most compiles walk over, which have a base; most is
// more than are made room for before they come.
const (
	shortLine = 4
	most      = 1 << 20
)

// spare is room for a list that goes on after so many elements: the next prompt of a
// history is put behind the last one.
func spare(n int) int { return n + n/32 + 8 }

func (l *listing) before(c *commit.Commit) {
	if l.free == 0 {
		more := max(shortLine, len(l.list))
		if l.whole && len(l.list) > 0 {
			more = int(min(c.Depth+1, most))
		}
		l.grow(more)
	}
	l.free--
	var after *Entry
	if l.free+1 < len(l.list) {
		after = &l.list[l.free+1]
	}
	l.list[l.free].take(c, after)
}

func (l *listing) grow(more int) {
	list := make([]Entry, more, spare(more+len(l.list)))
	objects.AdviseHugePages(list)
	l.list = append(list, l.list[l.free:]...)
	l.free = more
}

// again puts entries of another prompt before the list, as they were before anything
// was decided.
func (l *listing) again(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	l.grow(len(entries))
	for i := range entries {
		l.list[i] = entries[i].undecided()
	}
	l.free = 0
}

func (l *listing) entries() []Entry { return l.list[l.free:] }

func newHistory() *history {
	return &history{thought: -1, edits: map[objects.ID]*commit.Commit{}, notes: map[objects.ID]*commit.Commit{}}
}

// number counts turns and messages, and lists those entries that are looked at again.
func (h *history) number() {
	if b := h.base; b != nil {
		h.turns, h.messages, h.thought = b.turns, b.messages, b.thought
	}
	h.then = h.thought
	for i := range h.entries {
		e := &h.entries[i]
		switch e.Op {
		case commit.Edit:
			h.edits[e.Change().Target] = e.Change()
		case commit.Annotate:
			h.notes[e.Change().Target] = e.Change()
		case commit.Compress:
			h.compresses = append(h.compresses, i)
		}
		if e.beginsTurn() {
			h.turns++
			h.then = h.thought
		}
		if e.AddsBlock() && (e.Index == 0 || e.place&apart != 0) {
			h.messages++
		}
		if e.Turn, e.message = h.turns, int32(h.messages); e.Op != commit.Append {
			continue
		}
		switch {
		case e.Kind == content.KindReasoning:
			h.thought = e.Turn
		case e.Kind == content.KindSystem:
			h.systems = append(h.systems, e)
		case isTool(e.Kind):
			h.tools = append(h.tools, e)
		}
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
	if len(h.edits) == 0 {
		return nil
	}
	edit := h.edits[e.ID]
	if edit == nil || edit.ContentID == e.Content {
		return nil
	}
	return edit
}

// block is what stands for an entry; nil when it was not loaded.
func (h *history) block(e *Entry) content.Block {
	block := e.Block
	if edit := h.edit(e); edit != nil {
		block = edit.Block
	}
	if result, ok := block.(content.ToolResult); ok && h.left(e) != nil {
		result.Text = PurgedPlaceholder
		return result
	}
	return block
}

// load reads the blocks that stand for some entries.
func (h *history) load(ctx context.Context, r objects.Reader, entries []*Entry) error {
	if h.base != nil {
		entries = h.base.lend(entries)
	}
	if len(h.edits) > 0 {
		var own []*Entry
		var edits []*commit.Commit
		for _, e := range entries {
			if edit := h.edit(e); edit != nil {
				edits = append(edits, edit)
			} else {
				own = append(own, e)
			}
		}
		if err := commit.Load(ctx, r, edits...); err != nil {
			return err
		}
		h.erased = h.erased || slices.ContainsFunc(edits, func(c *commit.Commit) bool { return c.Tombstone != nil })
		entries = own
	}
	erased, err := load(ctx, r, entries)
	h.erased = h.erased || erased
	return err
}

// sentSystems lists the system blocks that are sent.
func (h *history) sentSystems() []*Entry {
	return slices.DeleteFunc(slices.Clone(h.systems), func(e *Entry) bool { return !e.Sent })
}

// sent lists what is sent.
func (h *history) sent() (list []*Entry) {
	for i := range h.entries {
		if e := &h.entries[i]; e.Sent && e.AddsBlock() {
			if list == nil {
				list = make([]*Entry, 0, len(h.entries)-i)
			}
			list = append(list, e)
		}
	}
	return list
}

// replaceSystems leaves out a named system block that a later one of its name
// replaces. The later one is sent in the place of the first.
func (h *history) replaceSystems() {
	places := map[string]*Entry{}
	for _, e := range h.sentSystems() {
		t, ok := h.block(e).(content.Text)
		if !ok || t.Name == "" {
			continue
		}
		place := places[t.Name]
		if place == nil {
			places[t.Name], e.few().holds = e, e
			continue
		}
		place.rare.holds.leaveOut(priority.Why("replaced by " + e.ID.Short()))
		place.rare.holds.place &^= counted
		place.rare.holds, e.place = e, e.place|moved
	}
}

// sums is what the history weighs.
func (h *history) sums() (s sums) {
	for i := range h.entries {
		s.add(&h.entries[i], 1)
	}
	return s
}

// fit drops whole turns from the oldest until the rest is within the budget.
func (h *history) fit(budget int) error {
	if budget <= 0 {
		return nil
	}
	turns := make([]priority.Turn, h.turns+1)
	turns[h.turns].Keep = true
	for i := range h.entries {
		e := &h.entries[i]
		if !e.AddsBlock() || !e.Sent {
			continue
		}
		tokens := int(e.Tokens)
		if e.Level == priority.Pinned || e.Kind == content.KindSystem {
			turns[e.sentTurn()].Fixed += tokens
		} else {
			turns[e.sentTurn()].Tokens += tokens
		}
	}
	drop, err := priority.Fit(h.scale.estimate(budget), turns)
	if over := (*priority.OverBudgetError)(nil); errors.As(err, &over) {
		return &priority.OverBudgetError{Budget: budget, Fixed: h.scale.Tokens(over.Fixed)}
	}
	if err != nil {
		return err
	}
	for _, e := range h.sent() {
		if drop[e.sentTurn()] && e.Level != priority.Pinned && e.Kind != content.KindSystem {
			e.leaveOut(whyBudget)
		}
	}
	return nil
}
