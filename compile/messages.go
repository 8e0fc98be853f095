package compile

import (
	"cmp"
	"math"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// buildAndCachePrompt joins the sent blocks to messages, counts tokens, and caches the prefix that the next
// prompt of the history can begin with.
func (h *history) buildAndCachePrompt(head objects.ID) *Prompt {
	b := h.newMessageBuilder()
	var next *prefix
	for i := range h.entries {
		e := &h.entries[i]
		if h.cache != nil && e.Turn == h.turns && next == nil {
			next = h.prefixBefore(i, b)
		}
		b.tokens.count(e)
		b.appendBlocksAt(h, i)
		if change := e.Change(); change != nil && e.Block == nil {
			e.Block = change.Block
		}
	}
	b.finishMessage()
	all := h.cache.appendToPrefix(h.from.prefix, promptSlices{h.entries, b.messages, b.blockEntries})
	if next != nil && next.entryCount > 0 {
		h.cache.add(h, next, all)
	}
	if len(all.messages) == 0 {
		all.messages, all.blockEntries = nil, nil
	}
	return &Prompt{
		Head: head, Entries: slices.Clip(all.entries), Messages: slices.Clip(all.messages), BlockEntries: slices.Clip(all.blockEntries),
		Tokens: b.tokens, Pending: h.pendingCalls(),
	}
}

// unfinishedToolMessage is a message of tool results that later results may join.
type unfinishedToolMessage struct {
	blocks       []content.Block
	entryIndexes []int32
	callRanks    []int
}

// messageBuilder joins blocks to messages.
type messageBuilder struct {
	promptSlices
	tokens   Tokens
	lastSent *Entry

	open       bool // a message has begun, to which the next three belong
	role       content.Role
	firstBlock int   // the index of its first block
	callRanks  []int // of tool results: the order of their calls

	blocks            []content.Block  // of all messages; the messages are slices of it
	movedEntryIndexes map[*Entry]int32 // of entries sent in another place; nil: not needed yet
	callCount         int              // tool calls sent
	rankByID          map[string]int   // of the calls of this turn
	turn              int32
}

func (h *history) newMessageBuilder() *messageBuilder {
	sent := h.countSent()
	b := &messageBuilder{blocks: make([]content.Block, 0, sent), rankByID: map[string]int{}}
	b.messages, b.blockEntries = make([]content.Message, 0, capWithSpare(sent)), make([]int32, 0, capWithSpare(sent))
	p := h.from.prefix
	if p == nil {
		return b
	}
	b.tokens, b.lastSent, b.callCount = p.tokens, p.lastSent, p.callCount
	if r := p.toolMessage; r != nil {
		b.open, b.role = true, content.RoleTool
		b.blocks, b.blockEntries, b.callRanks = append(b.blocks, r.blocks...), append(b.blockEntries, r.entryIndexes...), append(b.callRanks, r.callRanks...)
	}
	return b
}

// appendBlocksAt appends the blocks that are sent at the position of entry i of the history: the
// summaries of which it is the first covered commit, then its replacement or its own block.
func (b *messageBuilder) appendBlocksAt(h *history, i int) {
	e := &h.entries[i]
	for _, summary := range e.extraOrZero().summariesBefore {
		b.appendBlock(h, summary, b.promptIndexOfMoved(h, summary))
	}
	switch replacement := e.extraOrZero().replacement; {
	case replacement != nil && replacement != e:
		b.appendBlock(h, replacement, b.promptIndexOfMoved(h, replacement))
	case e.flags&relocated == 0 && e.Op == commit.Append:
		b.appendBlock(h, e, h.indexWithPrefix(i))
	}
}

// promptIndexOfMoved returns the index in [Prompt.Entries] of an entry that is sent at the position of
// another entry.
func (b *messageBuilder) promptIndexOfMoved(h *history, moved *Entry) (entryIndex int32) {
	if b.movedEntryIndexes == nil {
		b.movedEntryIndexes = map[*Entry]int32{}
		for i := range h.entries {
			if e := &h.entries[i]; e.extra != nil || e.flags&relocated != 0 {
				b.movedEntryIndexes[e] = h.indexWithPrefix(i)
			}
		}
	}
	return b.movedEntryIndexes[moved]
}

// indexWithPrefix returns the index in [Prompt.Entries] of entry i of the history: the entries of the
// cached prefix are before it.
func (h *history) indexWithPrefix(i int) int32 {
	if p := h.from.prefix; p != nil {
		i += p.entryCount
	}
	return int32(i)
}

// appendBlock appends the block of an entry, if it is sent. entryIndex is the entry's index in
// [Prompt.Entries].
func (b *messageBuilder) appendBlock(h *history, e *Entry, entryIndex int32) {
	if !e.InPrompt {
		return
	}
	if isTool(e.Kind) && e.Turn != b.turn {
		clear(b.rankByID)
		b.turn = e.Turn
	}
	block := h.blockOf(e)
	rank := math.MaxInt
	switch block := block.(type) {
	case content.ToolCall:
		b.rankByID[block.CallID] = b.callCount
		b.callCount++
	case content.ToolResult:
		rank = b.rankByID[block.CallID]
	}
	if !b.open || startsMessage(e, b.lastSent) {
		b.finishMessage()
		b.open, b.role, b.firstBlock = true, e.Role, len(b.blocks)
	}
	b.lastSent = e
	b.blocks, b.blockEntries = append(b.blocks, block), append(b.blockEntries, entryIndex)
	if e.Role == content.RoleTool {
		b.callRanks = append(b.callRanks, rank)
	}
}

// startsMessage reports whether an entry begins a message of the prompt. Successive tool results
// are one message, whatever messages they were appended in.
func startsMessage(e, before *Entry) bool {
	if before == nil || before.Role != e.Role {
		return true
	}
	return e.Role != content.RoleTool && before.message != e.message
}

// finishMessage ends the message that has begun, if any.
func (b *messageBuilder) finishMessage() {
	if !b.open {
		return
	}
	if len(b.callRanks) > 0 {
		b.sortResults()
	}
	to := len(b.blocks)
	b.open, b.messages = false, append(b.messages, content.Message{Role: b.role, Blocks: b.blocks[b.firstBlock:to:to]})
}

// sortResults sorts the tool results of the message in the order of their calls.
func (b *messageBuilder) sortResults() {
	s := b.copyOpenToolMessage()
	order := make([]int, len(s.callRanks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.callRanks[i], s.callRanks[j]) })
	for to, from := range order {
		b.blocks[b.firstBlock+to], b.blockEntries[b.firstBlock+to] = s.blocks[from], s.entryIndexes[from]
	}
	b.callRanks = b.callRanks[:0]
}

// copyOpenToolMessage returns a copy of the message that has begun, which is one of tool results.
func (b *messageBuilder) copyOpenToolMessage() *unfinishedToolMessage {
	return &unfinishedToolMessage{slices.Clone(b.blocks[b.firstBlock:]), slices.Clone(b.blockEntries[b.firstBlock:]), slices.Clone(b.callRanks)}
}

// prefixBefore returns the prefix of the prompt that ends before entry i, which begins the last turn.
func (h *history) prefixBefore(i int, b *messageBuilder) *prefix {
	p := &prefix{
		entryCount: i, turns: h.turns - 1, reasoningTurn: h.reasoningBefore, lastReasoningTurn: h.reasoningTurn,
		tokens: b.tokens, messageCount: len(b.messages), blockCount: len(b.blockEntries), lastSent: b.lastSent, callCount: b.callCount,
	}
	switch {
	case !b.open:
	case b.role == content.RoleTool: // results of the next turn may follow
		p.toolMessage, p.blockCount = b.copyOpenToolMessage(), b.firstBlock
	default:
		p.messageCount++
	}
	if from := h.from.prefix; from != nil {
		p.tip, p.lastMessage = from.tip, from.lastMessage
		p.entryCount += from.entryCount
		p.messageCount += from.messageCount
		p.blockCount += from.blockCount
	}
	if i > 0 {
		p.tip, p.lastMessage = h.entries[i-1].ID, int(h.entries[i-1].message)
	}
	return p
}

// count adds the tokens of an entry to the sums.
func (t *Tokens) count(e *Entry) {
	t.addBytes(e, 1)
	if n, sum := e.estimatedTokens(), t.sentOrHiddenSum(e); sum != nil {
		*sum += n
		t.Raw += n
	}
}

// sentOrHiddenSum returns the sum that the tokens of an entry belong to, by the decision about it:
// Effective, HiddenReasoning or Hidden. It returns nil for an entry without a block.
func (t *Tokens) sentOrHiddenSum(e *Entry) (sum *int) {
	switch {
	case !e.AddsBlock():
		return nil
	case e.InPrompt:
		return &t.Effective
	case e.Kind == content.KindReasoning:
		return &t.HiddenReasoning
	}
	return &t.Hidden
}

// scaledBy converts estimates into tokens.
func (t Tokens) scaledBy(s Scale) Tokens {
	tokens := Tokens{Effective: s.Tokens(t.Effective), Hidden: s.Tokens(t.Hidden), HiddenReasoning: s.Tokens(t.HiddenReasoning)}
	tokens.Raw = tokens.Effective + tokens.Hidden + tokens.HiddenReasoning
	return tokens
}

// EntryTokens returns the tokens of each entry. The tokens of the sent entries add up to
// Tokens.Effective, and those of the other entries to Tokens.Hidden and Tokens.HiddenReasoning.
func (p *Prompt) EntryTokens() []int {
	tokens := make([]int, len(p.Entries))
	var sums Tokens
	for i := range p.Entries {
		e := &p.Entries[i]
		if sum := sums.sentOrHiddenSum(e); sum != nil {
			tokens[i] = p.Scale.AddTokens(sum, e.estimatedTokens())
		}
	}
	return tokens
}
