// Package history has the functions that the root package and the packages above it (inspect,
// maintain, recorder) share: to walk histories, to read commits of which some may be damaged, and
// to add commits to refs.
//
// For most uses: [Tips] returns the commits at all refs, from which package commit walks;
// [LoadSeq] and [LoadEach] read the commits of a walk and return damage with the commit that has
// it. [LastTurn] and [UsedTools] tell whether a tool loop may be open, [LatestChanges] and
// [Changes] return edits and annotations, [Responses] the costs of responses, [TurnNumbers] the
// turns of commits. Commits are added to a ref with [Write], or with [Apply] for a prepared batch;
// a [Masker] masks their secrets before, and an [Operation] makes the note of the ref log entry.
//
// The functions keep no lock, transaction or connection open between the elements that they
// yield. They check no permissions and resolve no names: their callers do.
package history

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// RescueTime is the layout of the time at the end of the name of a rescue ref.
const RescueTime = "20060102T150405.000Z"

// Tips returns the targets of branches, tags and rescue refs, each once.
func Tips(ctx context.Context, r objects.RefReader) ([]objects.ID, error) {
	var tips []objects.ID
	seen := map[objects.ID]bool{}
	for _, folder := range []string{refs.Heads, refs.Tags, refs.Rescued} {
		list, err := r.Refs(ctx, objects.RefQuery{Prefix: folder})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", folder, err)
		}
		for _, ref := range list {
			if !seen[ref.Target] {
				seen[ref.Target], tips = true, append(tips, ref.Target)
			}
		}
	}
	return tips, nil
}

// TurnNumbers returns the number of the turn of every commit that tips reach by first
// parents.
func TurnNumbers(ctx context.Context, r objects.Reader, tips []objects.ID) (map[objects.ID]int, error) {
	turns := map[objects.ID]int{}
	for _, tip := range tips {
		var line []*commit.Commit
		turn := 0
		for c, err := range commit.Walk(ctx, r, tip, 0) {
			if err != nil {
				return nil, err
			}
			if known, ok := turns[c.ID]; ok {
				turn = known
				break
			}
			line = append(line, c)
		}
		for i := len(line) - 1; i >= 0; i-- {
			if line[i].BeginsTurn() {
				turn++
			}
			turns[line[i].ID] = turn
		}
	}
	return turns, nil
}
