package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Revert reverts a commit of the branch from here on, with a reason, and returns the commits
// that do so. A reverted block is left out of prompts. Reverting an edit restores the content
// before it, reverting an annotation restores the priority before it, and reverting a merge
// reverts everything that the merge brought. Prompts of the past do not change.
func (b *Branch) Revert(ctx context.Context, rev, reason string) ([]objects.ID, error) {
	c := b.repo.defaultOptions()
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("revert: %w", err)
	}
	reverted, err := b.repo.header(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("revert: %w", err)
	}
	if reason == "" {
		reason = "reverted"
	}
	return b.write(ctx, c, "revert", func(tip *commit.Commit) ([]commit.Draft, error) {
		if err := b.requireOnBranch(ctx, tip, id); err != nil {
			return nil, err
		}
		return b.revertDrafts(ctx, c, tip, reverted, reason)
	})
}

// requireOnBranch returns an error for a commit that is not on the history of tip.
func (b *Branch) requireOnBranch(ctx context.Context, tip *commit.Commit, id objects.ID) error {
	if tip == nil {
		return &refs.UnknownError{Rev: id.Short(), Why: "the branch has no commits yet"}
	}
	on, err := b.repo.isAncestor(ctx, id, tip.ID)
	if err == nil && !on {
		err = &refs.UnknownError{Rev: id.Short(), Why: fmt.Sprintf("it is not on branch %s", b.name)}
	}
	return err
}

// revertDrafts returns the drafts that revert a commit.
func (b *Branch) revertDrafts(ctx context.Context, c *callOptions, tip, reverted *commit.Commit, reason string) ([]commit.Draft, error) {
	switch reverted.Op {
	case commit.Edit, commit.Annotate:
		d, err := b.restoreChangeDraft(ctx, c, tip, history.ChangeKey{Target: reverted.Target, Op: reverted.Op}, reverted.Parent(), reason)
		return []commit.Draft{d}, err
	case commit.Merge:
		return b.revertMergeDrafts(ctx, c, tip, reverted, reason)
	}
	return []commit.Draft{b.annotationDraft(c, reverted.ID, priority.Skip, reason)}, nil
}

// revertMergeDrafts returns the drafts that revert a merge. They leave out the blocks that
// it brought, and revert the changes that it brought to other blocks, unless a later commit
// changed those blocks again.
func (b *Branch) revertMergeDrafts(ctx context.Context, c *callOptions, tip, merge *commit.Commit, reason string) ([]commit.Draft, error) {
	brought, err := commit.IncomingCommits(ctx, b.repo.store, merge.Parent(), merge.SecondParent())
	if err != nil {
		return nil, err
	}
	var drafts []commit.Draft
	in := map[objects.ID]bool{}
	for _, of := range brought {
		if in[of.ID] = true; of.AddsBlock() {
			drafts = append(drafts, b.annotationDraft(c, of.ID, priority.Skip, reason))
		}
	}
	_, order := history.LatestChanges(brought)
	for _, s := range order {
		if in[s.Target] {
			continue
		}
		last, err := b.repo.lastChange(ctx, tip.ID, s)
		if err != nil {
			return nil, err
		}
		if !in[last.ID] {
			continue
		}
		d, err := b.restoreChangeDraft(ctx, c, tip, s, merge.Parent(), reason)
		if err != nil && !errors.Is(err, ErrNoChange) {
			return nil, err
		}
		if err == nil {
			drafts = append(drafts, d)
		}
	}
	return drafts, nil
}

// restoreChangeDraft returns the draft that gives a block the content or the priority that
// it had at a commit.
func (b *Branch) restoreChangeDraft(ctx context.Context, c *callOptions, tip *commit.Commit, key history.ChangeKey, asOf objects.ID, reason string) (commit.Draft, error) {
	if key.Op == commit.Edit {
		return b.restoreContentDraft(ctx, c, tip, key.Target, asOf)
	}
	level := priority.Unset
	last, err := b.repo.lastChange(ctx, asOf, key)
	if err == nil && last != nil {
		level = last.Priority
	}
	return b.annotationDraft(c, key.Target, level, reason), err
}
