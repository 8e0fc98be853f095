package tract

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// LogAll is Log for several histories at once, or for one whose tip is known: each
// commit once and before its parents, the deepest first.
func (r *Repo) LogAll(ctx context.Context, tips []objects.ID, opts ...Option) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		c, err := r.call(opts)
		if err != nil {
			yield(nil, err)
			return
		}
		r.logged(ctx, tips, nil, c)(yield)
	}
}

// logged is history whose errors say that it was a log.
func (r *Repo) logged(ctx context.Context, tips, without []objects.ID, c *call) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		for c, err := range r.history(ctx, tips, without, c) {
			if err != nil {
				err = fmt.Errorf("log: %w", err)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// history yields what tips have and without has not, as Show gives it.
func (r *Repo) history(ctx context.Context, tips, without []objects.ID, c *call) iter.Seq2[*commit.Commit, error] {
	walk := commit.History(ctx, r.store, tips, without)
	if c.limit > 0 {
		walk = first(walk, c.limit)
	}
	return r.loaded(ctx, walk, cmp.Or(max(c.first, 0), max(c.limit, 0)))
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

// MergeBases gives the last commits that two revisions share: none when they share
// none, several when they were merged crosswise.
func (r *Repo) MergeBases(ctx context.Context, a, b string) ([]objects.ID, error) {
	left, err := r.Resolve(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("merge base: %w", err)
	}
	right, err := r.Resolve(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("merge base: %w", err)
	}
	return commit.MergeBases(ctx, r.store, left, right)
}

// isAncestor tells whether a history has a commit.
func (r *Repo) isAncestor(ctx context.Context, id, tip objects.ID) (bool, error) {
	base, err := commit.MergeBase(ctx, r.store, tip, id)
	return base == id, err
}

// Containing lists the branches whose history has a revision.
func (r *Repo) Containing(ctx context.Context, rev string) ([]refs.Info, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("branches with %s: %w", rev, err)
	}
	var all []refs.Info
	var tips []objects.ID
	for info, err := range r.Branches(ctx, refs.Query{}) {
		if err != nil {
			return nil, err
		}
		all, tips = append(all, info), append(tips, info.Tip)
	}
	has := map[objects.ID]bool{id: true}
	var above []*commit.Commit // children before parents
	for c, err := range commit.History(ctx, r.store, tips, []objects.ID{id}) {
		if err != nil {
			return nil, err
		}
		above = append(above, c)
	}
	for i := len(above) - 1; i >= 0; i-- {
		for _, parent := range above[i].Parents {
			if has[parent] {
				has[above[i].ID] = true
			}
		}
	}
	var list []refs.Info
	for _, info := range all {
		if has[info.Tip] {
			list = append(list, info)
		}
	}
	return list, nil
}
