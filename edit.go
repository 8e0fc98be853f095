package tract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// EditOptions are the options of [Branch.Edit].
type EditOptions struct {
	Source string            // a revision: the block gets the text that it has there, and the text argument of Edit must be empty
	Author string            // empty: the author of the Repo
	Label  string            // a line for people, never sent
	Meta   map[string]string // named values
	Key    string            // idempotency key, see [Branch.Append]
	Time   time.Time         // zero: now
}

// ErrNoChange is the error for a change that would have no effect.
var ErrNoChange = errors.New("nothing to change")

// Edit replaces the text of a block of the branch from here on and returns the id of the
// edit's commit. The last edit counts; the kind and the role of the block stay. With a
// Source the text is that of another revision; the error is [ErrNoChange] when the block has
// it already. When the branch moves meanwhile, the error is a *[ConflictError].
func (b *Branch) Edit(ctx context.Context, rev, text string, o EditOptions) (objects.ID, error) {
	if o.Source != "" && text != "" {
		return objects.ID{}, fmt.Errorf("edit: want either a text or a source, not both")
	}
	c, err := b.repo.resolveAppend(AppendOptions{Author: o.Author, Label: o.Label, Meta: o.Meta, Key: o.Key, Time: o.Time})
	if err != nil {
		return objects.ID{}, err
	}
	at, err := b.Tip(ctx)
	if err != nil {
		return objects.ID{}, err
	}
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return objects.ID{}, fmt.Errorf("edit: %w", err)
	}
	return onlyID(b.write(ctx, c, "edit", func(tip *commit.Commit) ([]commit.Draft, error) {
		if tip != nil && tip.ID != at {
			return nil, &ConflictError{Operation: "edit", Branch: b.name, Expected: at, Actual: tip.ID}
		}
		target, err := b.resolveTarget(ctx, tip, id)
		if err != nil {
			return nil, err
		}
		if o.Source == "" {
			d, err := b.newTextDraft(ctx, c, target, text)
			return []commit.Draft{d}, err
		}
		asOf, err := b.resolver().Resolve(ctx, o.Source)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		d, err := b.restoreContentDraft(ctx, c, tip, target.ID, asOf)
		return []commit.Draft{d}, err
	}))
}

// newTextDraft returns the draft of an edit that gives a block a text. It loads the block.
func (b *Branch) newTextDraft(ctx context.Context, c *callOptions, target *commit.Commit, text string) (d commit.Draft, err error) {
	if err := commit.Load(ctx, b.repo.store, target); err != nil {
		return commit.Draft{}, err
	}
	d = b.newChangeDraft(c, commit.Edit, target.ID)
	d.Role = target.Role
	if d.Block, err = content.WithText(target.Block, text); err == nil && content.IsEmpty(d.Block) {
		err = ErrEmpty
	}
	return d, err
}

// Annotate gives a block of the branch a priority from here on, with a reason that may be
// empty, and returns the id of the annotation's commit. priority.Unset removes an earlier
// annotation.
func (b *Branch) Annotate(ctx context.Context, rev string, l priority.Level, reason string) (objects.ID, error) {
	return b.annotate(ctx, "annotate", rev, l, reason)
}

func (b *Branch) annotate(ctx context.Context, command, rev string, l priority.Level, reason string) (objects.ID, error) {
	c := b.repo.defaultOptions()
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return objects.ID{}, fmt.Errorf("%s: %w", command, err)
	}
	return onlyID(b.write(ctx, c, command, func(tip *commit.Commit) ([]commit.Draft, error) {
		target, err := b.resolveTarget(ctx, tip, id)
		if err != nil {
			return nil, err
		}
		return []commit.Draft{b.annotationDraft(c, target.ID, l, reason)}, nil
	}))
}

// annotationDraft returns the draft of an annotation.
func (b *Branch) annotationDraft(c *callOptions, of objects.ID, l priority.Level, reason string) commit.Draft {
	d := b.newChangeDraft(c, commit.Annotate, of)
	d.Priority = l
	if reason != "" {
		d.Block = content.Note(reason)
	}
	return d
}

// newChangeDraft returns the draft of a commit that changes another one, without content.
func (b *Branch) newChangeDraft(c *callOptions, op commit.Op, target objects.ID) commit.Draft {
	d := c.newDraftWithoutRoleOrPriority(nil, &commit.Origin{Source: commit.SourceUser, Session: b.name})
	d.Op, d.Target = op, target
	return d
}

// resolveTarget returns the block that commit id stands for: of an edit the block that it
// edits. The block must be on the history of tip.
func (b *Branch) resolveTarget(ctx context.Context, tip *commit.Commit, id objects.ID) (*commit.Commit, error) {
	c, err := b.repo.header(ctx, id)
	if err != nil {
		return nil, err
	}
	switch c.Op {
	case commit.Edit:
		if c, err = b.repo.header(ctx, c.Target); err != nil {
			return nil, err
		}
	case commit.Annotate:
		return nil, &refs.UnknownError{Rev: id.Short(), Why: "it is an annotation, not a block; name the block, " + c.Target.Short()}
	case commit.Merge:
		return nil, &refs.UnknownError{Rev: id.Short(), Why: "it is a merge, not a block; use tract revert to revert what it brought"}
	}
	return c, b.requireOnBranch(ctx, tip, c.ID)
}

// restoreContentDraft returns the draft of an edit that gives a block the content that it had at a
// commit.
func (b *Branch) restoreContentDraft(ctx context.Context, c *callOptions, tip *commit.Commit, id, asOf objects.ID) (commit.Draft, error) {
	target, err := b.repo.header(ctx, id)
	if err != nil {
		return commit.Draft{}, err
	}
	if on, err := b.repo.isAncestor(ctx, id, asOf); err != nil || !on {
		if err == nil {
			err = &refs.UnknownError{Rev: asOf.Short(), Why: "block " + id.Short() + " is not on its history"}
		}
		return commit.Draft{}, err
	}
	contentAt := func(tip objects.ID) (objects.ID, error) {
		edit, err := b.repo.lastChange(ctx, tip, history.ChangeKey{Target: id, Op: commit.Edit})
		if err != nil || edit == nil {
			return target.ContentID, err
		}
		return edit.ContentID, nil
	}
	want, err := contentAt(asOf)
	if err != nil {
		return commit.Draft{}, err
	}
	have, err := contentAt(tip.ID)
	if err != nil {
		return commit.Draft{}, err
	}
	if have == want {
		return commit.Draft{}, ErrNoChange
	}
	d := b.newChangeDraft(c, commit.Edit, id)
	d.Role = target.Role
	d.Block, err = commit.ReadContent(ctx, b.repo.store, want)
	return d, err
}

// lastChange returns the last edit or annotation of a block on a history; nil when there is
// none.
func (r *Repo) lastChange(ctx context.Context, tip objects.ID, key history.ChangeKey) (*commit.Commit, error) {
	notes, err := history.Changes(ctx, r.store, tip, key.Target)
	if err != nil {
		return nil, err
	}
	for i := len(notes) - 1; i >= 0; i-- {
		if notes[i].Op == key.Op {
			return notes[i], nil
		}
	}
	return nil, nil
}
