package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/refs"
)

// Fork makes a new branch at a revision of this one and returns it, with the reasoning
// that b remembers (see [WithReasoning]). A branch of that name must not exist:
// objects.ErrExists.
func (b *Branch) Fork(ctx context.Context, name, at string, opts ...Option) (*Branch, error) {
	id, err := b.resolver().Resolve(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	if err := b.repo.newRef(ctx, "fork branch", refs.Heads, name, id, opts); err != nil {
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
func (b *Branch) Reset(ctx context.Context, rev string, opts ...Option) error {
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return b.moveTip(ctx, "reset", id, opts)
}

// Delete removes the branch. Its commits stay in the store, and the ref log says
// where it was.
func (b *Branch) Delete(ctx context.Context, opts ...Option) error {
	return b.moveTip(ctx, "delete branch", objects.ID{}, opts)
}

func (b *Branch) moveTip(ctx context.Context, command string, to objects.ID, opts []Option) error {
	c, err := b.repo.call(opts)
	if err != nil {
		return err
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() && to.IsZero() {
		return b.errNoCommits(command)
	}
	err = b.repo.move(ctx, c, command, objects.RefUpdate{Name: b.ref(), Old: tip, New: to})
	return b.conflict(c.verb(command), err)
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
func (b *Branch) Annotate(ctx context.Context, rev string, l priority.Level, reason string, opts ...Option) (objects.ID, error) {
	c, err := b.repo.call(opts)
	if err != nil {
		return objects.ID{}, err
	}
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return objects.ID{}, fmt.Errorf("annotate: %w", err)
	}
	ids, err := b.write(ctx, c, "annotate", func(tip *commit.Commit) ([]commit.Draft, error) {
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
// counts, and the kind and the role stay. With [TextAt] the words are those of a
// revision; [ErrNoChange] when the block has them already. It is a commit of its own,
// whose id is returned. It insists on the tip it saw: *[ConflictError].
func (b *Branch) Edit(ctx context.Context, rev, text string, opts ...Option) (objects.ID, error) {
	c, err := b.repo.call(opts)
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
	d, err := b.editDraft(ctx, c, tip, id, text)
	if err != nil {
		return objects.ID{}, fmt.Errorf("edit: %w", err)
	}
	commits, put, err := c.commits(tip, d)
	if err != nil {
		return objects.ID{}, fmt.Errorf("edit: %w", err)
	}
	var ids []objects.ID
	if err := b.repo.store.Apply(ctx, b.batch(c.note(ctx, "edit"), at, commits, put, &ids)); err != nil {
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

func (b *Branch) editDraft(ctx context.Context, c *call, tip *commit.Commit, id objects.ID, text string) (commit.Draft, error) {
	target, err := b.target(ctx, tip, id)
	if err != nil {
		return commit.Draft{}, err
	}
	if c.textAt != "" {
		at, err := b.resolver().Resolve(ctx, c.textAt)
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
	if d.Block, err = content.Edited(block, text); err == nil && content.IsEmpty(d.Block) {
		err = ErrEmpty
	}
	return d, err
}
