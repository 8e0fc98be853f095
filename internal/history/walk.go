// Package history is what the root package and the packages above it (inspect, maintain,
// recorder) share: they all walk histories, read commits of which some may be damaged, and
// add commits to refs.
//
// For most uses: [Tips] returns the commits at all refs, from which package commit walks;
// [LoadSeq] and [LoadEach] read what the walk found and return damage beside the rest.
// [LastTurn] and [UsedTools] tell whether a tool loop is open, [LatestChanges] and [Changes]
// what was edited or annotated, [Responses] what responses cost, [TurnNumbers] in which turn
// a commit is. [Write] adds commits to a ref: it is the one way to do so, with the secrets
// masked by a [Masker] and the ref log entry made by an [Operation].
//
// The functions keep no lock, transaction or connection open between the elements that they
// yield. They check no permissions and resolve no names; that is for their callers.
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

// Tips returns the commits at which branches, tags and rescue refs are, each once.
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
