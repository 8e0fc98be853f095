package compile

import (
	"cmp"
	"math"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// prompt joins the blocks that are sent to messages and counts, and remembers what
// the next prompt of the history can begin with.
func (h *history) prompt(head objects.ID, m *memory) *Prompt {
	w := h.writer()
	var next *base
	for i := range h.entries {
		e := &h.entries[i]
		if m != nil && e.Turn == h.turns && next == nil {
			next = h.baseAt(i, w)
		}
		w.add(h, i)
		if said := e.Change(); said != nil && e.Block == nil {
			e.Block = said.Block
		}
	}
	w.end()
	whole := h.base.join(parts{h.entries, w.messages, w.said})
	if next != nil && next.count > 0 {
		m.remember(h, next, whole)
	}
	if len(whole.messages) == 0 {
		whole.messages, whole.said = nil, nil
	}
	return &Prompt{
		Head: head, Entries: slices.Clip(whole.entries), Messages: slices.Clip(whole.messages), BlockEntries: slices.Clip(whole.said),
		Tokens: w.tokens, Pending: h.pending(),
	}
}

// spoken is a message of tool results to which more may be added.
type spoken struct {
	blocks []content.Block
	places []int32 // of their entries
	ranks  []int   // the places of their calls
}

// writer joins blocks to messages.
type writer struct {
	parts
	tokens Tokens
	before *Entry // the last that was sent

	open  bool         // there is a message at hand
	role  content.Role // of that
	from  int          // where it begins among the blocks
	ranks []int        // of its tool results: the place of their calls

	blocks []content.Block  // of all messages, one after the other, as said has their places
	places map[*Entry]int32 // of entries that are sent elsewhere; nil: none was yet
	calls  int              // that were sent
	order  map[string]int   // of those of this turn, by id
	turn   int32
}

func (h *history) writer() *writer {
	sent := 0
	for i := range h.entries {
		if e := &h.entries[i]; e.Sent && e.AddsBlock() {
			sent++
		}
	}
	w := &writer{blocks: make([]content.Block, 0, sent), order: map[string]int{}}
	w.messages, w.said = make([]content.Message, 0, spare(sent)), make([]int32, 0, spare(sent))
	objects.AdviseHugePages(w.blocks[:sent])
	objects.AdviseHugePages(w.messages[:cap(w.messages)])
	b := h.base
	if b == nil {
		return w
	}
	w.tokens, w.before, w.calls = b.tokens, b.before, b.calls
	if b.open != nil {
		w.open, w.role = true, content.RoleTool
		w.blocks, w.said, w.ranks = append(w.blocks, b.open.blocks...), append(w.said, b.open.places...), append(w.ranks, b.open.ranks...)
	}
	return w
}

// add counts an entry, and says it and what is sent before it. What is sent in the
// place of another is said there.
func (w *writer) add(h *history, i int) {
	e := &h.entries[i]
	w.tokens.count(e)
	var holds *Entry
	if e.rare != nil {
		holds = e.rare.holds
		for _, summary := range e.rare.ahead {
			w.say(h, summary, w.place(h, summary))
		}
	}
	switch {
	case holds != nil && holds != e:
		w.say(h, holds, w.place(h, holds))
	case e.place&moved == 0 && e.Op == commit.Append:
		w.say(h, e, h.place(i))
	}
}

// place is that of an entry that is sent in another place.
func (w *writer) place(h *history, e *Entry) int32 {
	if w.places == nil {
		w.places = map[*Entry]int32{}
		for i := range h.entries {
			if e := &h.entries[i]; e.rare != nil || e.place&moved != 0 {
				w.places[e] = h.place(i)
			}
		}
	}
	return w.places[e]
}

// place is that of an entry among those of the prompt.
func (h *history) place(i int) int32 {
	if h.base != nil {
		i += h.base.count
	}
	return int32(i)
}

// say says an entry, if it is sent.
func (w *writer) say(h *history, e *Entry, place int32) {
	if !e.Sent {
		return
	}
	if isTool(e.Kind) && e.Turn != w.turn {
		clear(w.order)
		w.turn = e.Turn
	}
	b := h.block(e)
	rank := math.MaxInt
	switch b := b.(type) {
	case content.ToolCall:
		w.order[b.CallID] = w.calls
		w.calls++
	case content.ToolResult:
		rank = w.order[b.CallID]
	}
	if !w.open || begins(e, w.before) {
		w.end()
		w.open, w.role, w.from = true, e.Role, len(w.blocks)
	}
	w.before = e
	w.blocks, w.said = append(w.blocks, b), append(w.said, place)
	if e.Role == content.RoleTool {
		w.ranks = append(w.ranks, rank)
	}
}

// begins tells whether an entry begins a message of the prompt. Results that
// follow one another are one message however they came.
func begins(e, before *Entry) bool {
	if before == nil || before.Role != e.Role {
		return true
	}
	return e.Role != content.RoleTool && before.message != e.message
}

// end ends the message at hand. Results come in the order of their calls.
func (w *writer) end() {
	if !w.open {
		return
	}
	if len(w.ranks) > 0 {
		w.inOrder()
	}
	to := len(w.blocks)
	w.open, w.messages = false, append(w.messages, content.Message{Role: w.role, Blocks: w.blocks[w.from:to:to]})
}

// inOrder brings the results of the message at hand into the order of their calls.
func (w *writer) inOrder() {
	s := w.hand()
	places := make([]int, len(s.ranks))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(s.ranks[a], s.ranks[b]) })
	for to, from := range places {
		w.blocks[w.from+to], w.said[w.from+to] = s.blocks[from], s.places[from]
	}
	w.ranks = w.ranks[:0]
}

// hand is a copy of the message at hand, which is one of results.
func (w *writer) hand() *spoken {
	return &spoken{slices.Clone(w.blocks[w.from:]), slices.Clone(w.said[w.from:]), slices.Clone(w.ranks)}
}

// baseAt is the history before one of its entries, which begins a turn.
func (h *history) baseAt(i int, w *writer) *base {
	b := &base{count: i, turns: h.turns - 1, thought: h.then, thinking: h.thought, tokens: w.tokens, said: len(w.messages), blocks: len(w.said), before: w.before, calls: w.calls}
	switch {
	case !w.open:
	case w.role == content.RoleTool: // results of the next turn may follow
		b.open, b.blocks = w.hand(), w.from
	default:
		b.said++
	}
	if h.base != nil {
		b.tip, b.count, b.said, b.blocks = h.base.tip, b.count+h.base.count, b.said+h.base.said, b.blocks+h.base.blocks
		b.messages = h.base.messages
	}
	if i > 0 {
		b.tip, b.messages = h.entries[i-1].ID, int(h.entries[i-1].message)
	}
	return b
}

// count adds the estimate of an entry.
func (t *Tokens) count(e *Entry) {
	t.add(e, 1)
	n, of := e.estimate(), t.of(e)
	if of != nil {
		*of, t.Raw = *of+n, t.Raw+n
	}
}

// lacking lists what is sent and was not loaded yet.
func (h *history) lacking() (list []*Entry) {
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Sent || !e.AddsBlock() || e.Block != nil {
			continue
		}
		if list == nil {
			list = make([]*Entry, 0, len(h.entries)-i)
		}
		list = append(list, e)
	}
	return list
}

// of is the sum that an entry counts in; nil: in none.
func (t *Tokens) of(e *Entry) *int {
	switch {
	case !e.AddsBlock():
		return nil
	case e.Sent:
		return &t.Effective
	case e.Kind == content.KindReasoning:
		return &t.HiddenReasoning
	}
	return &t.Hidden
}

// scaled makes tokens from estimates.
func (t Tokens) scaled(s Scale) Tokens {
	tokens := Tokens{Effective: s.Tokens(t.Effective), Hidden: s.Tokens(t.Hidden), HiddenReasoning: s.Tokens(t.HiddenReasoning)}
	tokens.Raw = tokens.Effective + tokens.Hidden + tokens.HiddenReasoning
	return tokens
}

// EntryTokens gives the tokens of each of the entries. Those that are sent add up to
// Tokens.Effective, and the others likewise.
func (p *Prompt) EntryTokens() []int {
	rows := make([]int, len(p.Entries))
	var sums Tokens
	for i := range p.Entries {
		e := &p.Entries[i]
		if of := sums.of(e); of != nil {
			rows[i] = p.Scale.AddTokens(of, e.estimate())
		}
	}
	return rows
}
