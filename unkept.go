package tract

import (
	"context"
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Thoughts that are not committed stay with the Branch, in memory, as long as
// the tool loop they belong to is open: its provider may demand them back.

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

// withUnkept is the messages of a prompt with the thoughts of its open turn that
// were not committed. One whose thoughts nobody has any more, and whose target
// wants them, is a *[RuleError].
func (b *Branch) withUnkept(ctx context.Context, x *Exchange) ([]content.Message, error) {
	open := map[objects.ID]bool{}
	wanted := x.Target == nil || x.Target.WantsTurn()
	last := x.Prompt.Entries[len(x.Prompt.Entries)-1].Turn
	for i := len(x.Prompt.Entries) - 1; i >= 0 && x.Prompt.Entries[i].Turn == last; i-- {
		open[x.Prompt.Entries[i].Commit.ID] = true
	}
	b.mu.Lock()
	maps.DeleteFunc(b.unkept, func(id objects.ID, _ []content.Block) bool { return !open[id] })
	kept := maps.Clone(b.unkept)
	b.mu.Unlock()
	if !wanted {
		return x.Prompt.Messages, nil
	}
	if err := b.checkKept(ctx, x, open, kept); err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return x.Prompt.Messages, nil
	}
	messages := make([]content.Message, len(x.Prompt.Messages))
	for i, m := range x.Prompt.Messages {
		messages[i] = content.Message{Role: m.Role}
		for j, block := range m.Blocks {
			messages[i].Blocks = append(append(messages[i].Blocks, kept[x.Prompt.Commits[i][j]]...), block)
		}
	}
	return messages, nil
}

// checkKept looks for replies of the open turn whose thoughts were not committed
// and are not remembered either.
func (b *Branch) checkKept(ctx context.Context, x *Exchange, open map[objects.ID]bool, kept map[objects.ID][]content.Block) error {
	remembered := map[objects.ID]bool{} // by origin
	for _, e := range x.Prompt.Entries {
		if len(kept[e.Commit.ID]) > 0 {
			remembered[e.Commit.Origin] = true
		}
	}
	for _, e := range x.Prompt.Entries {
		c := e.Commit
		if !open[c.ID] || c.Kind != content.KindToolCall || c.Origin.IsZero() || remembered[c.Origin] {
			continue
		}
		origin, err := commit.ReadOrigin(ctx, b.repo.store, c.Origin)
		if err != nil {
			return err
		}
		if origin.Unkept > 0 {
			return &RuleError{Rule: "reasoning-not-kept", Commit: c.ID, Message: "the thoughts before this tool call were not committed, and its provider wants them back"}
		}
		remembered[c.Origin] = true
	}
	return nil
}
