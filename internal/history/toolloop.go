package history

import (
	"context"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// LastTurn yields the commits of the last turn of a history, newest first, without the user
// message that begins it. A merge ends the walk too, because it closes
// a tool loop. An error is the last element.
func LastTurn(ctx context.Context, r objects.Reader, tip objects.ID) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		for c, err := range commit.Walk(ctx, r, tip, 0) {
			if err == nil && (c.Op == commit.Merge || c.BeginsTurn()) || !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// UsedTools reports whether the last turn of a history has a tool call or a tool result.
func UsedTools(ctx context.Context, r objects.Reader, tip objects.ID) (bool, error) {
	for c, err := range LastTurn(ctx, r, tip) {
		if err != nil {
			return false, err
		}
		if c.Op == commit.Append && (c.Kind == content.KindToolCall || c.Kind == content.KindToolResult) {
			return true, nil
		}
	}
	return false, nil
}
