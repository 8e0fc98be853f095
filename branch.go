package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Fork makes a new branch at a revision of this one and returns it, with the reasoning
// that b remembers (see [Branch.Generate]). A branch of that name must not exist:
// objects.ErrExists.
func (b *Branch) Fork(ctx context.Context, name, at string) (*Branch, error) {
	id, err := b.resolver().Resolve(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	if err := b.repo.newRef(ctx, "fork branch", refs.Heads, name, id); err != nil {
		return nil, err
	}
	forked := b.repo.Branch(name)
	b.mu.Lock()
	forked.unkept = maps.Clone(b.unkept)
	b.mu.Unlock()
	return forked, nil
}

// move moves refs in one transaction.
func (r *Repo) move(ctx context.Context, c *call, command string, updates ...objects.RefUpdate) error {
	return r.store.Apply(ctx, objects.Batch{Refs: updates, Note: c.note(ctx, command)})
}

// Reset moves the branch to a revision. What it leaves behind stays in the
// store, and the ref log says where it was. It insists on the tip it saw:
// *[ConflictError].
func (b *Branch) Reset(ctx context.Context, rev string) error {
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	return b.conflict("reset", b.repo.move(ctx, b.repo.call(), "reset", objects.RefUpdate{Name: b.ref(), Old: tip, New: id}))
}

// conflict makes a moved ref an error of this package.
func (b *Branch) conflict(operation string, err error) error {
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) {
		return &ConflictError{Operation: operation, Branch: b.name, Expected: moved.Want, Actual: moved.Have}
	}
	if err != nil {
		return fmt.Errorf("%s branch %s: %w", operation, b.name, err)
	}
	return nil
}

// Annotate gives a commit of the branch a priority from here on, with a reason
// that may be empty; priority.Unset takes an earlier one back. It is a commit
// of its own, whose id is returned.
func (b *Branch) Annotate(ctx context.Context, rev string, l priority.Level, reason string) (objects.ID, error) {
	return b.annotate(ctx, "annotate", rev, l, reason)
}

func (b *Branch) annotate(ctx context.Context, command, rev string, l priority.Level, reason string) (objects.ID, error) {
	c := b.repo.call()
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return objects.ID{}, fmt.Errorf("%s: %w", command, err)
	}
	ids, err := b.write(ctx, c, command, func(tip *commit.Commit) ([]commit.Draft, error) {
		target, err := b.target(ctx, tip, id)
		if err != nil {
			return nil, err
		}
		return []commit.Draft{b.noted(c, target.ID, l, reason)}, nil
	})
	if err != nil {
		return objects.ID{}, err
	}
	return ids[0], nil
}

func (b *Branch) draft(c *call, op commit.Op, target objects.ID) commit.Draft {
	d := c.draft(nil, &commit.Origin{Source: cmp.Or(c.source, commit.SourceUser), Session: b.name})
	d.Op, d.Target = op, target
	return d
}

// target is the block that a revision speaks of: an edit stands for what it
// edits. It has to be on the history of tip.
func (b *Branch) target(ctx context.Context, tip *commit.Commit, id objects.ID) (*commit.Commit, error) {
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
		return nil, &refs.UnknownError{Rev: id.Short(), Why: "it is a merge, not a block; tract revert takes back what it brought"}
	}
	if tip == nil {
		return nil, &refs.UnknownError{Rev: id.Short(), Why: "the branch has no commits yet"}
	}
	base, err := commit.MergeBase(ctx, b.repo.store, tip.ID, c.ID)
	if err != nil {
		return nil, err
	}
	if base != c.ID {
		return nil, &refs.UnknownError{Rev: id.Short(), Why: fmt.Sprintf("it is not on branch %s", b.name)}
	}
	return c, nil
}

// Edit replaces the words of a block of the branch from here on; the last edit
// counts, and the kind and the role stay. With a Source the text is that of a
// revision; [ErrNoChange] when the block has them already. It is a commit of its own,
// whose id is returned. It insists on the tip it saw: *[ConflictError].
func (b *Branch) Edit(ctx context.Context, rev, text string, o EditOptions) (objects.ID, error) {
	if o.Source != "" && text != "" {
		return objects.ID{}, fmt.Errorf("edit: both a text and a source are given: want one")
	}
	c, err := b.repo.appending(AppendOptions{Author: o.Author, Label: o.Label, Meta: o.Meta, Key: o.Key, Time: o.Time})
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
	tip, err := b.repo.header(ctx, at)
	if err != nil {
		return objects.ID{}, err
	}
	draft := func(tip *commit.Commit) ([]commit.Draft, error) {
		d, err := b.editDraft(ctx, c, tip, id, text, o.Source)
		return []commit.Draft{d}, err
	}
	if !c.key.IsZero() && tip != nil {
		if done, err := b.repeated(ctx, c, at, draft); err != nil || len(done) > 0 {
			if err != nil {
				return objects.ID{}, fmt.Errorf("edit: %w", err)
			}
			return done[0], nil
		}
	}
	drafts, err := draft(tip)
	if err != nil {
		return objects.ID{}, fmt.Errorf("edit: %w", err)
	}
	commits, put, err := c.commits(tip, drafts...)
	if err != nil {
		return objects.ID{}, fmt.Errorf("edit: %w", err)
	}
	var ids []objects.ID
	if err := b.apply(ctx, b.batch(c.note(ctx, "edit"), at, commits, put, &ids)); err != nil {
		return objects.ID{}, b.conflict("edit", err)
	}
	return ids[0], nil
}

// blockOf is the block of a commit, or what is left of it when its words were erased:
// others may be put in their place.
func (r *Repo) blockOf(ctx context.Context, c *commit.Commit) (content.Block, error) {
	own := *c // headers are shared
	err := commit.Load(ctx, r.store, &own)
	return own.Block, err
}

func (b *Branch) editDraft(ctx context.Context, c *call, tip *commit.Commit, id objects.ID, text, source string) (commit.Draft, error) {
	target, err := b.target(ctx, tip, id)
	if err != nil {
		return commit.Draft{}, err
	}
	if source != "" {
		at, err := b.resolver().Resolve(ctx, source)
		if err != nil {
			return commit.Draft{}, fmt.Errorf("source: %w", err)
		}
		return b.wordsOf(ctx, c, tip, target.ID, at)
	}
	block, err := b.repo.blockOf(ctx, target)
	if err != nil {
		return commit.Draft{}, err
	}
	d := b.draft(c, commit.Edit, target.ID)
	d.Role = target.Role
	if d.Block, err = content.WithText(block, text); err == nil && content.IsEmpty(d.Block) {
		err = ErrEmpty
	}
	return d, err
}
