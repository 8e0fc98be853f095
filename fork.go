package tract

import (
	"context"
	"fmt"
	"maps"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// Fork makes a new branch at a revision of this one and returns it, with the reasoning that
// b keeps in memory (see [Branch.Generate]). When a branch of that name exists, the error
// is an [objects.ErrExists].
func (b *Branch) Fork(ctx context.Context, name, at string) (*Branch, error) {
	id, err := b.resolver().Resolve(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	if err := b.repo.createRef(ctx, "fork branch", refs.Heads, name, id); err != nil {
		return nil, err
	}
	forked := b.repo.Branch(name)
	b.mu.Lock()
	forked.uncommitted = maps.Clone(b.uncommitted)
	b.mu.Unlock()
	return forked, nil
}

// Reset moves the branch to a revision. The commits that it leaves stay in the store, and
// the ref log says where the branch was. When the branch moves meanwhile, the error is a
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
	return b.wrapStoreError("reset", b.repo.moveRefs(ctx, b.repo.defaultOptions(), "reset", objects.RefUpdate{Name: b.ref(), Old: tip, New: id}))
}
