package compile

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// prompt joins the blocks that are sent to messages and counts.
func (h *history) prompt(head objects.ID) *Prompt {
	p := &Prompt{Head: head, Entries: h.entries, Pending: h.pending(), Calibration: h.calibration}
	p.Tokens.Raw, p.Tokens.Effective = h.calibration.Overhead, h.calibration.Overhead
	order := map[string]int{} // of tool calls, by id
	var before *Entry
	for i := range h.entries {
		e := &h.entries[i]
		p.Tokens.count(e)
		if e.holds != nil {
			e = e.holds
		} else if e.moved {
			continue
		}
		if !e.Sent {
			continue
		}
		b := h.block(e)
		if call, ok := b.(content.ToolCall); ok {
			order[call.CallID] = len(order)
		}
		if p.begins(e, before) {
			p.Messages = append(p.Messages, content.Message{Role: e.Commit.Role})
			p.Commits = append(p.Commits, nil)
		}
		before = e
		at := len(p.Messages) - 1
		p.Messages[at].Blocks = append(p.Messages[at].Blocks, b)
		p.Commits[at] = append(p.Commits[at], e.Commit.ID)
	}
	for i := range p.Messages {
		if p.Messages[i].Role == content.RoleTool {
			p.sortResults(i, order)
		}
	}
	return p
}

// begins tells whether an entry begins a message of the prompt. Results that
// follow one another are one message however they came.
func (p *Prompt) begins(e, before *Entry) bool {
	if before == nil || before.Commit.Role != e.Commit.Role {
		return true
	}
	return e.Commit.Role != content.RoleTool && before.message != e.message
}

// sortResults puts the results of a message in the order of their calls.
func (p *Prompt) sortResults(at int, order map[string]int) {
	type item struct {
		block content.Block
		id    objects.ID
	}
	items := make([]item, len(p.Commits[at]))
	for i := range items {
		items[i] = item{p.Messages[at].Blocks[i], p.Commits[at][i]}
	}
	rank := func(b content.Block) int {
		if r, ok := b.(content.ToolResult); ok {
			return order[r.CallID]
		}
		return len(order)
	}
	slices.SortStableFunc(items, func(a, b item) int { return rank(a.block) - rank(b.block) })
	for i, it := range items {
		p.Messages[at].Blocks[i], p.Commits[at][i] = it.block, it.id
	}
}

func (t *Tokens) count(e *Entry) {
	if e.Commit.Op != commit.Append {
		return
	}
	t.Raw += e.Tokens
	switch {
	case e.Sent:
		t.Effective += e.Tokens
	case e.Commit.Kind == content.KindReasoning:
		t.HiddenReasoning += e.Tokens
	default:
		t.Hidden += e.Tokens
	}
}
