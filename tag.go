package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// Tag gives a commit a name that stays where it is. A tag of that name must not
// exist: objects.ErrExists.
func (r *Repo) Tag(ctx context.Context, name, rev string) error {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return fmt.Errorf("tag: %w", err)
	}
	return r.newRef(ctx, "tag", refs.Tags, name, id)
}

// DeleteRefs removes branches, tags and rescued replies, by the names of their refs, such
// as refs/tags/v1: all in one transaction, or none. What they named stays in the store,
// and the ref log says where they were.
func (r *Repo) DeleteRefs(ctx context.Context, names []string) error {
	var moves []objects.RefUpdate
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		ref, err := objects.ReadRef(ctx, r.store, name)
		if err == nil && ref.Target.IsZero() {
			err = refs.None(name)
		}
		if err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		moves = append(moves, objects.RefUpdate{Name: name, Old: ref.Target})
	}
	if err := r.move(ctx, r.call(), "delete", moves...); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// newRef makes a ref that must not exist yet.
func (r *Repo) newRef(ctx context.Context, command, folder, name string, at objects.ID) error {
	if err := refs.Check(name); err != nil {
		return fmt.Errorf("%s %w", command, err)
	}
	err := r.vacant(ctx, folder+name)
	if err == nil {
		err = r.move(ctx, r.call(), command, objects.RefUpdate{Name: folder + name, New: at})
	}
	if errors.As(err, new(*objects.ConflictError)) {
		err = objects.ErrExists
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", command, name, err)
	}
	return nil
}

// vacant tells whether a name is free. A ref that is already where a batch wants
// it is no conflict, so that has to be asked before.
func (r *Repo) vacant(ctx context.Context, ref string) error {
	there, err := objects.ReadRef(ctx, r.store, ref)
	if err == nil && !there.Target.IsZero() {
		err = objects.ErrExists
	}
	return err
}

// Rename gives the branch another name, with its description. A branch of that
// name must not exist: objects.ErrExists.
func (b *Branch) Rename(ctx context.Context, name string) (*Branch, error) {
	if err := refs.Check(name); err != nil {
		return nil, fmt.Errorf("rename: branch %w", err)
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if tip.IsZero() {
		return nil, b.errNoCommits("rename")
	}
	moves := []objects.RefUpdate{{Name: b.ref(), Old: tip}, {Name: refs.Heads + name, New: tip}}
	described, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil {
		return nil, err
	}
	if !described.Target.IsZero() {
		moves = append(moves, objects.RefUpdate{Name: described.Name, Old: described.Target}, objects.RefUpdate{Name: refs.Describe + name, New: described.Target})
	}
	if err := b.repo.vacant(ctx, refs.Heads+name); err != nil {
		return nil, fmt.Errorf("rename: branch %q: %w", name, err)
	}
	err = b.repo.move(ctx, b.repo.call(), "rename", moves...)
	if conflict := (*objects.ConflictError)(nil); errors.As(err, &conflict) && conflict.Ref == refs.Heads+name {
		return nil, fmt.Errorf("rename: branch %q: %w", name, objects.ErrExists)
	}
	if err := b.conflict("rename", err); err != nil {
		return nil, err
	}
	return b.repo.Branch(name), nil
}

// Describe says what the branch is about; the empty text takes that back.
func (b *Branch) Describe(ctx context.Context, text string) error {
	c := b.repo.call()
	if err := refs.Check(b.name); err != nil {
		return fmt.Errorf("describe: branch %w", err)
	}
	old, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil {
		return err
	}
	batch := objects.Batch{Note: c.note(ctx, "describe")}
	update := objects.RefUpdate{Name: refs.Describe + b.name, Old: old.Target}
	m := c.masking()
	if text != "" {
		label := m.Label(commit.Label{Text: text}).Object()
		update.New, batch.Put = label.ID, []objects.Object{label}
	}
	if update.Old == update.New {
		return nil
	}
	batch.Refs = []objects.RefUpdate{update}
	if err := b.repo.store.Apply(ctx, batch); err != nil {
		return b.conflict("describe", err)
	}
	c.tell(m.found)
	return nil
}

// description is what Describe said of the branch, or empty.
func (b *Branch) description(ctx context.Context) (string, error) {
	ref, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil || ref.Target.IsZero() {
		return "", err
	}
	label, err := commit.ReadLabel(ctx, b.repo.store, ref.Target)
	return label.Text, err
}
