package tract

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// LogOptions are the options of [Repo.Log].
type LogOptions struct {
	Limit int          // most commits; 0: all
	Tips  []objects.ID // more histories, beside that of the revision; an empty revision adds none
}

// Log yields the commits of a revision, newest first, as Show returns them, with the commits
// that merges brought. "A..B" is what B has and A does not have. With the Tips of several
// histories it yields each commit once and before its parents, the deepest first. A
// *[commit.DamagedError] comes with its commit; any other error is the last element.
func (r *Repo) Log(ctx context.Context, rev string, o LogOptions) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		tips, without := o.Tips, []objects.ID(nil)
		if rev != "" {
			from, to, err := r.resolverWithoutHead().Range(ctx, rev)
			if err != nil {
				yield(nil, fmt.Errorf("log: %w", err))
				return
			}
			tips, without = append(slices.Clip(tips), to), []objects.ID{from}
		}
		walk := commit.History(ctx, r.store, tips, without)
		left := o.Limit
		for c, err := range history.LoadSeq(ctx, r.store, walk, max(o.Limit, 0)) {
			if err != nil {
				err = fmt.Errorf("log: %w", err)
			}
			if left--; !yield(c, err) || left == 0 {
				return
			}
		}
	}
}

// isAncestor reports whether the history of tip contains the commit id.
func (r *Repo) isAncestor(ctx context.Context, id, tip objects.ID) (bool, error) {
	base, err := commit.MergeBase(ctx, r.store, tip, id)
	return base == id, err
}
