package tract

import (
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Thoughts that are not committed stay with the Branch, in memory, as long as
// the tool loop they belong to is open: its provider may demand them back. For a
// target that demands those of closed turns too they stay for good.

// keepThoughts remembers the thoughts of a reply by the commit they stand before.
func (b *Branch) keepThoughts(unkept map[int][]content.Block, commits []*commit.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for place, thoughts := range unkept {
		if place < len(commits) {
			if b.unkept == nil {
				b.unkept = map[objects.ID][]content.Block{}
			}
			b.unkept[commits[place].ID] = thoughts
		}
	}
}

// withUnkept is the messages of a prompt with the thoughts that were not committed
// and go back, those of its open turn as a rule, and those thoughts, by the commit they stand before.
func (b *Branch) withUnkept(x *Exchange) ([]content.Message, map[objects.ID][]content.Block) {
	open := map[objects.ID]bool{}
	last := x.Prompt.Entries[len(x.Prompt.Entries)-1].Turn
	keeps := x.call.compileOptions().KeepToolReasoning
	for i := len(x.Prompt.Entries) - 1; i >= 0 && (keeps || x.Prompt.Entries[i].Turn == last); i-- {
		open[x.Prompt.Entries[i].ID] = true
	}
	b.mu.Lock()
	maps.DeleteFunc(b.unkept, func(id objects.ID, _ []content.Block) bool { return !open[id] })
	kept := maps.Clone(b.unkept)
	b.mu.Unlock()
	if len(kept) == 0 || x.Target != nil && !x.Target.NeedsReasoningInToolLoop() {
		return x.Prompt.Messages, nil
	}
	messages := make([]content.Message, len(x.Prompt.Messages))
	for i, commits := range x.Prompt.MessageCommits() {
		m := x.Prompt.Messages[i]
		messages[i] = content.Message{Role: m.Role}
		for j, block := range m.Blocks {
			messages[i].Blocks = append(append(messages[i].Blocks, kept[commits[j]]...), block)
		}
	}
	return messages, kept
}
