package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// Resolve returns the commit that a revision names; "tract help revisions" lists the forms.
// When there is none, the error is an [objects.ErrNotFound].
func (r *Repo) Resolve(ctx context.Context, rev string) (objects.ID, error) {
	return r.resolverWithoutHead().Resolve(ctx, rev)
}

// Show returns one commit with its block, its origin and its label. Of a damaged commit it
// returns what can be read, with a *[commit.DamagedError].
func (r *Repo) Show(ctx context.Context, rev string) (*commit.Commit, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	if err := history.Load(ctx, r.store, c); err != nil {
		return c, fmt.Errorf("show: %w", err)
	}
	return c, nil
}
