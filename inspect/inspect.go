// Package inspect answers questions about the histories of a store: what led to a block and
// what left one out, which commit a line comes from, where a pattern matches, what models
// reasoned and what their responses cost, and whether a request can be made again from what
// is stored.
//
// Its functions only read. What they return was read from the store of the repo at the time
// of the call.
package inspect

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// tips returns the commits of revisions; of all branches, tags and rescue refs when there
// are none.
func tips(ctx context.Context, repo *tract.Repo, revs []string) ([]objects.ID, error) {
	if len(revs) == 0 {
		return history.Tips(ctx, repo.Store())
	}
	var ids []objects.ID
	for _, rev := range revs {
		id, err := repo.Resolve(ctx, rev)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// turnTips returns tips, and with turns also the numbers of the turns of all that they reach.
func turnTips(ctx context.Context, repo *tract.Repo, revs []string, turns bool) (ids []objects.ID, numbers map[objects.ID]int, err error) {
	if ids, err = tips(ctx, repo, revs); err == nil && turns {
		numbers, err = history.TurnNumbers(ctx, repo.Store(), ids)
	}
	return ids, numbers, err
}

// Prompt returns the prompt that a response answered, as its manifest records it. The
// revision is any commit of the response.
func Prompt(ctx context.Context, repo *tract.Repo, rev string) (*compile.Prompt, error) {
	c, err := repo.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	m, err := history.Manifest(ctx, repo.Store(), c)
	if err != nil {
		return nil, err
	}
	return compile.Chain(ctx, repo.Store(), m.Head, m.Options)
}

// Changes returns the annotations and edits of a commit on the history of tip, oldest first,
// as Show returns them; with a *[commit.DamagedError] when one is damaged.
func Changes(ctx context.Context, repo *tract.Repo, tip, id objects.ID) ([]*commit.Commit, error) {
	list, err := history.Changes(ctx, repo.Store(), tip, id)
	if err != nil {
		err = fmt.Errorf("changes of %s: %w", id.Short(), err)
	}
	return list, err
}

// Scale returns the factor from estimates to tokens in the prompt of a revision.
func Scale(ctx context.Context, repo *tract.Repo, rev string) (compile.Scale, error) {
	id, err := repo.Resolve(ctx, rev)
	if err != nil {
		return compile.Scale{}, err
	}
	return compile.ScaleOf(ctx, repo.Store(), id)
}

// MergeBases returns the last commits that two revisions share: none when they share none,
// several when they were merged crosswise.
func MergeBases(ctx context.Context, repo *tract.Repo, a, b string) ([]objects.ID, error) {
	ids, err := tips(ctx, repo, []string{a, b})
	if err != nil {
		return nil, fmt.Errorf("merge base: %w", err)
	}
	return commit.MergeBases(ctx, repo.Store(), ids[0], ids[1])
}

// Containing returns the branches whose history has a revision.
func Containing(ctx context.Context, repo *tract.Repo, rev string) ([]tract.RefInfo, error) {
	id, err := repo.Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("branches with %s: %w", rev, err)
	}
	var all []tract.RefInfo
	var ends []objects.ID
	for info, err := range repo.Refs(ctx, tract.RefQuery{}) {
		if err != nil {
			return nil, err
		}
		all, ends = append(all, info), append(ends, info.Tip)
	}
	var above []*commit.Commit // children before parents
	for c, err := range commit.History(ctx, repo.Store(), ends, []objects.ID{id}) {
		if err != nil {
			return nil, err
		}
		above = append(above, c)
	}
	has := map[objects.ID]bool{id: true}
	for i := len(above) - 1; i >= 0; i-- {
		for _, parent := range above[i].Parents {
			if has[parent] {
				has[above[i].ID] = true
			}
		}
	}
	var list []tract.RefInfo
	for _, info := range all {
		if has[info.Tip] {
			list = append(list, info)
		}
	}
	return list, nil
}
