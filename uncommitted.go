package tract

import (
	"maps"

	"github.com/tract-vcs/tract/commit"
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

// withUncommittedReasoning returns the messages of a prompt, together with the reasoning that was not
// committed but has to be sent. uncommitted is that reasoning, by the commit that it comes before.
func (b *Branch) withUncommittedReasoning(x *Exchange) (messages []content.Message, uncommitted map[objects.ID][]content.Block) {
	open := map[objects.ID]bool{}
	last := x.Prompt.Entries[len(x.Prompt.Entries)-1].Turn
	keeps := x.options.compilerOptions().KeepToolReasoning
	for i := len(x.Prompt.Entries) - 1; i >= 0 && (keeps || x.Prompt.Entries[i].Turn == last); i-- {
		open[x.Prompt.Entries[i].ID] = true
	}
	b.mu.Lock()
	maps.DeleteFunc(b.uncommitted, func(id objects.ID, _ []content.Block) bool { return !open[id] })
	uncommitted = maps.Clone(b.uncommitted)
	b.mu.Unlock()
	if len(uncommitted) == 0 || x.Target != nil && !x.Target.NeedsReasoningInToolLoop() {
		return x.Prompt.Messages, nil
	}
	messages = make([]content.Message, len(x.Prompt.Messages))
	for i, commits := range x.Prompt.MessageCommits() {
		m := x.Prompt.Messages[i]
		messages[i] = content.Message{Role: m.Role}
		for j, block := range m.Blocks {
			messages[i].Blocks = append(append(messages[i].Blocks, uncommitted[commits[j]]...), block)
		}
	}
	return messages, uncommitted
}
