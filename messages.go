package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Messages returns all messages of the branch, oldest first: instructions, user messages,
// reasoning, text, tool calls and results. An edited block has the text of its last edit. A
// purged block keeps its position, its kind and its call id, with
// [compile.PurgedPlaceholder] as its content; a purged image becomes a text block. A branch
// without commits has no messages.
//
// [Repo.Compile] differs: it returns what is sent to a model next. Priorities, summaries,
// budgets and the settings of reasoning decide what a prompt contains; Messages ignores all
// of these. A prompt has a summary in place of the blocks that it stands for, replaces an
// instruction by a later one of the same name, sorts results in the order of their calls and
// leaves out purged blocks; Messages has every block in its original position. Neither has
// notes, and Messages has no summaries.
func (b *Branch) Messages(ctx context.Context) ([]content.Message, error) {
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	h, err := b.repo.readHistory(ctx, tip)
	if err != nil {
		return nil, fmt.Errorf("messages of branch %s: %w", b.name, err)
	}
	return joinToMessages(h, h.blocks, func(s *historyBlock) content.Block { return s.current }), nil
}

// branchHistory is the conversation up to a commit.
type branchHistory struct {
	line              []*commit.Commit // as commit.Linearize returns it
	onFirstParentLine []bool           // for each commit of line: the tip reaches it by first parents only
	blocks            []historyBlock
}

// historyBlock is a block of a history.
type historyBlock struct {
	lineIndex     int           // index of the commit in the line
	editIndex     int           // index of the last edit in the line; 0: there is none
	original      content.Block // before edits
	current       content.Block // after the last edit
	beginsMessage bool          // a message begins here
}

// readHistory reads the conversation up to a commit; an empty one for the zero id.
func (r *Repo) readHistory(ctx context.Context, tip objects.ID) (*branchHistory, error) {
	h := &branchHistory{}
	if tip.IsZero() {
		return h, nil
	}
	line, err := commit.Linearize(ctx, r.store, tip)
	if err != nil {
		return nil, err
	}
	h.line, h.onFirstParentLine = line, make([]bool, len(line))
	edits := map[objects.ID]int{}
	var wanted []*commit.Commit
	for i, c := range line {
		if c.Op == commit.Edit {
			edits[c.Target] = i
		}
		if c.Op == commit.Edit || isMessagePart(c) {
			wanted = append(wanted, c)
		}
	}
	if err := commit.Load(ctx, r.store, wanted...); err != nil {
		return nil, err
	}
	before := -1 // index of the last commit that adds a block
	for i, c := range line {
		if !isMessagePart(c) {
			continue
		}
		s := historyBlock{lineIndex: i, editIndex: edits[c.ID], original: blockOrPlaceholder(c)}
		if s.current = s.original; s.editIndex > 0 && line[s.editIndex].ContentID != c.ContentID {
			s.current = blockOrPlaceholder(line[s.editIndex])
		}
		apart := i > 0 && c.Parent() != line[i-1].ID
		s.beginsMessage = before < 0 || line[before].Role != c.Role || c.Role != content.RoleTool && (c.Index == 0 || apart)
		h.blocks, before = append(h.blocks, s), i
	}
	next := tip
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].ID == next {
			h.onFirstParentLine[i], next = true, line[i].Parent()
		}
	}
	return h, nil
}

// isMessagePart reports whether a commit adds a block of the conversation: a block with a role,
// unlike a note.
func isMessagePart(c *commit.Commit) bool { return c.Op == commit.Append && c.Role != content.NoRole }

// blockOrPlaceholder returns the block of a commit, with a placeholder for purged content.
func blockOrPlaceholder(c *commit.Commit) content.Block {
	if c.Tombstone == nil {
		return c.Block
	}
	block, err := content.WithText(c.Block, compile.PurgedPlaceholder)
	if err != nil {
		return content.User(compile.PurgedPlaceholder)
	}
	return block
}

// joinToMessages joins blocks to messages. block returns the version of each block to use.
func joinToMessages(h *branchHistory, blocks []historyBlock, block func(*historyBlock) content.Block) []content.Message {
	var list []content.Message
	for i := range blocks {
		s := &blocks[i]
		if i == 0 || s.beginsMessage {
			list = append(list, content.Message{Role: h.line[s.lineIndex].Role})
		}
		m := &list[len(list)-1]
		m.Blocks = append(m.Blocks, block(s))
	}
	return list
}
