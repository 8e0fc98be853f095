package history

import (
	"context"
	"errors"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// Every commit reaches a store through Write or Apply. When a store cannot tell whether a
// batch was written, both look whether the ref has the commits, and write them again when
// it has not.

// Write adds the drafts that draft returns for the tip of a ref, nil when there is none, in
// one batch, and returns their commits. When the ref moves meanwhile, draft is called
// again. Without drafts nothing is written.
func Write(
	ctx context.Context, s objects.Store, ref string, note objects.Note, draft func(tip *commit.Commit) ([]commit.Draft, error),
) (commits []*commit.Commit, err error) {
	var move objects.RefUpdate
	build := func(at objects.ID) (objects.Batch, error) {
		var tip *commit.Commit
		commits, err = nil, nil
		if !at.IsZero() {
			tip, err = commit.Read(ctx, s, at)
		}
		if err != nil {
			return objects.Batch{}, err
		}
		drafts, err := draft(tip)
		if err != nil || len(drafts) == 0 {
			return objects.Batch{}, err
		}
		b := objects.Batch{Note: note}
		if commits, b.Put, err = commit.Write(tip, drafts...); err != nil {
			return objects.Batch{}, err
		}
		move = objects.RefUpdate{Name: ref, Old: at, New: commits[len(commits)-1].ID}
		b.Refs = []objects.RefUpdate{move}
		return b, nil
	}
	err = s.Update(ctx, ref, build)
	if objects.IsUnknown(err) && len(commits) > 0 {
		err = s.Update(ctx, ref, func(at objects.ID) (objects.Batch, error) {
			if hasMove(ctx, s, at, move) {
				return objects.Batch{}, nil
			}
			return build(at)
		})
	}
	if err != nil {
		return nil, err
	}
	return commits, nil
}

// Apply applies a batch that moves a ref from the tip that its caller read.
func Apply(ctx context.Context, s objects.Store, b objects.Batch) error {
	err := s.Apply(ctx, b)
	if !objects.IsUnknown(err) {
		return err
	}
	err = s.Apply(ctx, b)
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) && hasMove(ctx, s, moved.Have, b.Refs[0]) {
		return nil // the first attempt moved the ref, and another writer moved it on
	}
	return err
}

// hasMove reports whether the move of a ref is part of the history of tip.
func hasMove(ctx context.Context, r objects.Reader, tip objects.ID, u objects.RefUpdate) bool {
	for c, err := range commit.Walk(ctx, r, tip, 0, u.Old) {
		if err != nil {
			return false
		}
		if c.ID == u.New {
			return true
		}
	}
	return false
}
