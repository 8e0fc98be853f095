package tract

import (
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// rememberReasoning keeps the reasoning of a response that was not committed in the memory
// of the Branch, by the commit that it comes before. It stays there while its tool loop is
// open, because the provider may require it in the next request; for a provider that
// requires the reasoning of closed turns too, it stays as long as the Branch.
func (b *Branch) rememberReasoning(unkept map[int][]content.Block, commits []*commit.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, reasoning := range unkept {
		if i < len(commits) {
			if b.uncommitted == nil {
				b.uncommitted = map[objects.ID][]content.Block{}
			}
			b.uncommitted[commits[i].ID] = reasoning
		}
	}
}

// forgetReasoningOfClosedTurns removes the reasoning that the next request no longer needs from the
// memory of the Branch, and returns a copy of the rest: by the commit that it comes before.
func (b *Branch) forgetReasoningOfClosedTurns(x *Exchange) (uncommitted map[objects.ID][]content.Block) {
	open := map[objects.ID]bool{}
	last := x.Prompt.Entries[len(x.Prompt.Entries)-1].Turn
	keeps := x.options.compilerOptions().KeepToolReasoning
	for i := len(x.Prompt.Entries) - 1; i >= 0 && (keeps || x.Prompt.Entries[i].Turn == last); i-- {
		open[x.Prompt.Entries[i].ID] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.uncommitted, func(id objects.ID, _ []content.Block) bool { return !open[id] })
	return maps.Clone(b.uncommitted)
}

// insertReasoning returns the messages of a prompt with reasoning inserted before the blocks of the
// commits that it comes before.
func insertReasoning(p *compile.Prompt, reasoning map[objects.ID][]content.Block) []content.Message {
	messages := make([]content.Message, len(p.Messages))
	for i, commits := range p.MessageCommits() {
		m := p.Messages[i]
		messages[i] = content.Message{Role: m.Role}
		for j, block := range m.Blocks {
			messages[i].Blocks = append(append(messages[i].Blocks, reasoning[commits[j]]...), block)
		}
	}
	return messages
}
