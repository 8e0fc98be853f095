package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// ErrNoChange says that a block already is as it was asked to be.
var ErrNoChange = errors.New("nothing to change: it is so already")

// Revert takes a commit of the branch back from here on, with a reason, and returns
// the commits that do it. A block is left out of prompts; an edit gives way to the
// words before it, an annotation to the priority before it; of a merge all that it
// brought is taken back. What prompts of the past had stays.
func (b *Branch) Revert(ctx context.Context, rev, reason string) ([]objects.ID, error) {
	c := b.repo.call()
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
		if err := b.on(ctx, tip, id); err != nil {
			return nil, err
		}
		return b.reverting(ctx, c, tip, reverted, reason)
	})
}

// on refuses a commit that a history has not.
func (b *Branch) on(ctx context.Context, tip *commit.Commit, id objects.ID) error {
	if tip == nil {
		return &refs.UnknownError{Rev: id.Short(), Why: "the branch has no commits yet"}
	}
	on, err := b.repo.isAncestor(ctx, id, tip.ID)
	if err == nil && !on {
		err = &refs.UnknownError{Rev: id.Short(), Why: fmt.Sprintf("it is not on branch %s", b.name)}
	}
	return err
}

func (b *Branch) reverting(ctx context.Context, c *call, tip, reverted *commit.Commit, reason string) ([]commit.Draft, error) {
	switch reverted.Op {
	case commit.Edit, commit.Annotate:
		d, err := b.before(ctx, c, tip, history.ChangeKey{Target: reverted.Target, Op: reverted.Op}, reverted.Parent(), reason)
		return []commit.Draft{d}, err
	case commit.Merge:
		return b.revertingMerge(ctx, c, tip, reverted, reason)
	}
	return []commit.Draft{b.noted(c, reverted.ID, priority.Skip, reason)}, nil
}

// revertingMerge leaves out the blocks that a merge brought, and takes back what it
// brought of others, where nobody has said more since.
func (b *Branch) revertingMerge(ctx context.Context, c *call, tip, merge *commit.Commit, reason string) ([]commit.Draft, error) {
	brought, err := commit.IncomingCommits(ctx, b.repo.store, merge.Parent(), merge.SecondParent())
	if err != nil {
		return nil, err
	}
	var drafts []commit.Draft
	in := map[objects.ID]bool{}
	for _, of := range brought {
		if in[of.ID] = true; of.AddsBlock() {
			drafts = append(drafts, b.noted(c, of.ID, priority.Skip, reason))
		}
	}
	_, order := history.LatestChanges(brought)
	for _, s := range order {
		if in[s.Target] {
			continue
		}
		last, err := b.repo.lastSaid(ctx, tip.ID, s)
		if err != nil {
			return nil, err
		}
		if !in[last.ID] {
			continue
		}
		d, err := b.before(ctx, c, tip, s, merge.Parent(), reason)
		if err != nil && !errors.Is(err, ErrNoChange) {
			return nil, err
		}
		if err == nil {
			drafts = append(drafts, d)
		}
	}
	return drafts, nil
}

// before is the draft that makes a subject be what it was at a commit.
func (b *Branch) before(ctx context.Context, c *call, tip *commit.Commit, s history.ChangeKey, at objects.ID, reason string) (commit.Draft, error) {
	if s.Op == commit.Edit {
		return b.wordsOf(ctx, c, tip, s.Target, at)
	}
	level := priority.Unset
	last, err := b.repo.lastSaid(ctx, at, s)
	if err == nil && last != nil {
		level = last.Priority
	}
	return b.noted(c, s.Target, level, reason), err
}

// noted is the draft of an annotation.
func (b *Branch) noted(c *call, of objects.ID, l priority.Level, reason string) commit.Draft {
	d := b.draft(c, commit.Annotate, of)
	d.Priority = l
	if reason != "" {
		d.Block = content.Note(reason)
	}
	return d
}

// wordsOf is the draft of an edit that gives a block the words it had at a commit.
func (b *Branch) wordsOf(ctx context.Context, c *call, tip *commit.Commit, id, at objects.ID) (commit.Draft, error) {
	target, err := b.repo.header(ctx, id)
	if err != nil {
		return commit.Draft{}, err
	}
	if on, err := b.repo.isAncestor(ctx, id, at); err != nil || !on {
		if err == nil {
			err = &refs.UnknownError{Rev: at.Short(), Why: "block " + id.Short() + " is not on its history"}
		}
		return commit.Draft{}, err
	}
	said := func(tip objects.ID) (objects.ID, error) {
		edit, err := b.repo.lastSaid(ctx, tip, history.ChangeKey{Target: id, Op: commit.Edit})
		if err != nil || edit == nil {
			return target.ContentID, err
		}
		return edit.ContentID, nil
	}
	want, err := said(at)
	if err != nil {
		return commit.Draft{}, err
	}
	have, err := said(tip.ID)
	if err != nil {
		return commit.Draft{}, err
	}
	if have == want {
		return commit.Draft{}, ErrNoChange
	}
	d := b.draft(c, commit.Edit, id)
	d.Role = target.Role
	d.Block, err = commit.ReadContent(ctx, b.repo.store, want)
	return d, err
}

// lastSaid is the last change of a subject on a history; nil when there is none.
func (r *Repo) lastSaid(ctx context.Context, tip objects.ID, s history.ChangeKey) (*commit.Commit, error) {
	notes, err := history.Changes(ctx, r.store, tip, s.Target)
	if err != nil {
		return nil, err
	}
	for i := len(notes) - 1; i >= 0; i-- {
		if notes[i].Op == s.Op {
			return notes[i], nil
		}
	}
	return nil, nil
}
