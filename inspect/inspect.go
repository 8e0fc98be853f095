// Package inspect answers questions about the histories of a store.
//
// For most uses: [Why] explains which reasoning and which prompt led to a block, [WhyNot] why a
// prompt does not have a block, [Blame] which commit each line of a prompt comes from. [Grep]
// searches the text of blocks, [Reasoning] lists the reasoning of models, [Usage] the cost of
// their responses. [Reproduce] makes a request again from the store and compares it with the one
// that was sent; [Verify] does so for all requests.
//
// The functions only read, and return data as it was in the store at the time of the call.
// Damage of one commit does not end [Grep], [Reasoning] or [Changes]: the error comes with the
// commit. The package prints nothing; package format does.
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

// resolveTips returns the commits of the revisions, or the tips of all branches, tags and rescue refs
// when there are no revisions.
func resolveTips(ctx context.Context, repo *tract.Repo, revs []string) ([]objects.ID, error) {
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

// resolveTipsAndTurns returns the result of resolveTips and, if wantTurns is true, the turn number of
// each commit that the tips reach.
func resolveTipsAndTurns(ctx context.Context, repo *tract.Repo, revs []string, wantTurns bool) (tips []objects.ID, turns map[objects.ID]int, err error) {
	if tips, err = resolveTips(ctx, repo, revs); err == nil && wantTurns {
		turns, err = history.TurnNumbers(ctx, repo.Store(), tips)
	}
	return tips, turns, err
}

// Prompt returns the prompt of the request that a response answered, as the manifest records it.
// The revision may be any commit of the response.
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

// MergeBases returns the merge bases of two revisions: none when they share no commit, several
// after a criss-cross merge.
func MergeBases(ctx context.Context, repo *tract.Repo, a, b string) ([]objects.ID, error) {
	ids, err := resolveTips(ctx, repo, []string{a, b})
	if err != nil {
		return nil, fmt.Errorf("merge base: %w", err)
	}
	return commit.MergeBases(ctx, repo.Store(), ids[0], ids[1])
}

// Containing returns the branches whose history contains a revision.
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
