package recorder

import (
	"context"
	"errors"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// repeated is how many messages of a conversation a client only says again: those up to
// the last words of the model. What follows them it says anew.
func repeated(all []content.Message) int {
	for n := len(all); n > 0; n-- {
		if all[n-1].Role == content.RoleAssistant {
			return n
		}
	}
	return 0
}

// remaining is a conversation without what was erased of that which the client repeats,
// as a prompt has it. It is nil when nothing was. all is masked as what is stored is.
func (x *index) remaining(ctx context.Context, all, masked []content.Message) ([]content.Message, error) {
	n := repeated(all)
	ids := map[objects.ID][][2]int{}
	var list []objects.ID
	for i, m := range masked[:n] {
		for j, b := range m.Blocks {
			id, err := commit.ContentID(b)
			if err != nil {
				return nil, err
			}
			if ids[id] == nil {
				list = append(list, id)
			}
			ids[id] = append(ids[id], [2]int{i, j})
		}
	}
	gone := map[[2]int]bool{}
	for o, err := range x.repo.Store().Get(ctx, list) {
		if err != nil && !errors.Is(err, objects.ErrPurged) && !errors.Is(err, objects.ErrCorrupt) {
			return nil, err
		}
		if errors.Is(err, objects.ErrPurged) {
			for _, at := range ids[o.ID] {
				gone[at] = true
			}
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	return without(all, gone), nil
}

// without is a conversation as a prompt has it when some of its blocks were erased: a
// result says so, a call goes with its result and the thoughts before it, and the others
// are left out.
func without(all []content.Message, gone map[[2]int]bool) []content.Message {
	calls := map[string]bool{}
	var rest []content.Message
	for i, m := range all {
		var blocks []content.Block
		thoughts := 0 // at the end of blocks
		for j, b := range m.Blocks {
			call, isCall := b.(content.ToolCall)
			result, isResult := b.(content.ToolResult)
			switch {
			case isResult && calls[result.CallID]:
				continue
			case isCall && gone[[2]int{i, j}]:
				calls[call.CallID] = true
				blocks = blocks[:len(blocks)-thoughts]
				thoughts = 0
				continue
			case isResult && gone[[2]int{i, j}]:
				result.Text, result.Parts = compile.PurgedPlaceholder, nil
				b = result
			case gone[[2]int{i, j}]:
				continue
			}
			if thoughts++; b.Kind() != content.KindReasoning {
				thoughts = 0
			}
			blocks = append(blocks, b)
		}
		if len(blocks) > 0 {
			rest = append(rest, content.Message{Role: m.Role, Blocks: blocks})
		}
	}
	return rest
}
