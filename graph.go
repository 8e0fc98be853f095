package tract

import (
	"context"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// history yields what tips have and without has not, as Show gives it.
func (r *Repo) history(ctx context.Context, tips, without []objects.ID, limit int) iter.Seq2[*commit.Commit, error] {
	walk := commit.History(ctx, r.store, tips, without)
	if limit > 0 {
		walk = first(walk, limit)
	}
	return history.Loaded(ctx, r.store, walk, max(limit, 0))
}

// first ends a walk after so many commits.
func first(walk iter.Seq2[*commit.Commit, error], limit int) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		left := limit
		for c, err := range walk {
			if left--; !yield(c, err) || left == 0 {
				return
			}
		}
	}
}

// isAncestor tells whether a history has a commit.
func (r *Repo) isAncestor(ctx context.Context, id, tip objects.ID) (bool, error) {
	base, err := commit.MergeBase(ctx, r.store, tip, id)
	return base == id, err
}
