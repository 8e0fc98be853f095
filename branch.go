package tract

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// Branch is one conversation. It need not exist yet: the first commit creates it.
type Branch struct {
	repo *Repo
	name string

	mu          sync.Mutex
	uncommitted map[objects.ID][]content.Block // reasoning that was not committed, by the commit that it comes before
}

// Branch returns the branch with a name. It does no I/O; the first method call on the branch
// reports an invalid name. Two calls return two Branches, which do not share the reasoning
// that [Branch.Generate] keeps in memory.
func (r *Repo) Branch(name string) *Branch {
	return &Branch{repo: r, name: name}
}

// BranchName encodes any string, such as the id of a thread, a user or a session in another
// system, as the name of a branch: "thread 1" becomes "thread%201", "user@host:7" becomes
// "user%40host%3A7". A valid name without a percent sign does not change. Different strings
// have different names, and [ParseBranchName] decodes a name. A name of more than 244 bytes
// is refused where it is used.
func BranchName(anything string) string { return refs.Escape(anything) }

// ParseBranchName decodes a name that [BranchName] encoded. Any other name with a percent
// sign, and any name that no branch can have, is an error.
func ParseBranchName(name string) (string, error) { return refs.Unescape(name) }

// Name returns the name of the branch.
func (b *Branch) Name() string { return b.name }

func (b *Branch) ref() string { return refs.Heads + b.name }

// Tip returns the last commit of the branch; zero when it has none.
func (b *Branch) Tip(ctx context.Context) (objects.ID, error) {
	if err := refs.Check(b.name); err != nil {
		return objects.ID{}, fmt.Errorf("branch: %w", err)
	}
	ref, err := objects.ReadRef(ctx, b.repo.store, b.ref())
	return ref.Target, err
}

// resolver returns a resolver of revisions in which HEAD is the branch.
func (b *Branch) resolver() refs.Resolver {
	return refs.Resolver{Store: b.repo.store, Head: b.name, Now: b.repo.clock}
}

// Rename gives the branch another name, and moves its description with it. When a branch of
// that name exists, the error is an [objects.ErrExists].
func (b *Branch) Rename(ctx context.Context, name string) (*Branch, error) {
	if err := refs.Check(name); err != nil {
		return nil, fmt.Errorf("rename: branch %w", err)
	}
	tip, err := b.requireTip(ctx, "rename")
	if err != nil {
		return nil, err
	}
	moves := []objects.RefUpdate{{Name: b.ref(), Old: tip}, {Name: refs.Heads + name, New: tip}}
	described, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil {
		return nil, err
	}
	if !described.Target.IsZero() {
		moves = append(moves, objects.RefUpdate{Name: described.Name, Old: described.Target}, objects.RefUpdate{Name: refs.Describe + name, New: described.Target})
	}
	if err := b.repo.requireNoRef(ctx, refs.Heads+name); err != nil {
		return nil, fmt.Errorf("rename: branch %q: %w", name, err)
	}
	err = b.repo.moveRefs(ctx, b.repo.defaultOptions(), "rename", moves...)
	if conflict := (*objects.ConflictError)(nil); errors.As(err, &conflict) && conflict.Ref == refs.Heads+name {
		return nil, fmt.Errorf("rename: branch %q: %w", name, objects.ErrExists)
	}
	if err := b.wrapStoreError("rename", err); err != nil {
		return nil, err
	}
	return b.repo.Branch(name), nil
}

// Describe sets the description of the branch; the empty text removes it.
func (b *Branch) Describe(ctx context.Context, text string) error {
	c := b.repo.defaultOptions()
	if err := refs.Check(b.name); err != nil {
		return fmt.Errorf("describe: branch %w", err)
	}
	old, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil {
		return err
	}
	batch := objects.Batch{Note: c.note(ctx, "describe")}
	update := objects.RefUpdate{Name: refs.Describe + b.name, Old: old.Target}
	m := c.newMasker()
	if text != "" {
		label := m.Label(commit.Label{Text: text}).Object()
		update.New, batch.Put = label.ID, []objects.Object{label}
	}
	if update.Old == update.New {
		return nil
	}
	batch.Refs = []objects.RefUpdate{update}
	if err := b.repo.store.Apply(ctx, batch); err != nil {
		return b.wrapStoreError("describe", err)
	}
	c.callOnSecrets(m.found)
	return nil
}

// description returns the description of the branch; empty when it has none.
func (b *Branch) description(ctx context.Context) (string, error) {
	ref, err := objects.ReadRef(ctx, b.repo.store, refs.Describe+b.name)
	if err != nil || ref.Target.IsZero() {
		return "", err
	}
	label, err := commit.ReadLabel(ctx, b.repo.store, ref.Target)
	return label.Text, err
}

// requireTip returns the tip of the branch, and an error when the branch has no commits.
func (b *Branch) requireTip(ctx context.Context, operation string) (objects.ID, error) {
	tip, err := b.Tip(ctx)
	if err == nil && tip.IsZero() {
		err = fmt.Errorf("%s: %w", operation, &refs.UnknownError{Rev: b.name, Why: "the branch has no commits yet"})
	}
	return tip, err
}

// wrapStoreError adds the operation and the branch to an error of the store. A ref that moved
// is a *[ConflictError].
func (b *Branch) wrapStoreError(operation string, err error) error {
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) {
		return &ConflictError{Operation: operation, Branch: b.name, Expected: moved.Want, Actual: moved.Have}
	}
	if err != nil {
		return fmt.Errorf("%s branch %s: %w", operation, b.name, err)
	}
	return nil
}
