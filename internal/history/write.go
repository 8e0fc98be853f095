package history

import (
	"context"
	"errors"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// Write and Apply add commits to a ref. A store may fail without knowing whether the batch was
// written (objects.IsUnknown), for example when the connection to a server is lost. Both functions
// then look for the new commits in the history of the ref, and write the batch again when they are
// not there.

// Write commits drafts to a ref in one batch, and returns their commits. It calls draft with the
// tip of the ref, which is nil when the ref does not exist, and calls it again when the ref moves
// meanwhile. Without drafts nothing is written.
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
			if historyContains(ctx, s, at, move.New, move.Old) {
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
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) && historyContains(ctx, s, moved.Have, b.Refs[0].New, b.Refs[0].Old) {
		return nil // the first attempt moved the ref, and another writer moved it on
	}
	return err
}

// historyContains reports whether a commit is on the history of tip, later than the commit after.
func historyContains(ctx context.Context, r objects.Reader, tip, id, after objects.ID) bool {
	for c, err := range commit.Walk(ctx, r, tip, 0, after) {
		if err != nil {
			return false
		}
		if c.ID == id {
			return true
		}
	}
	return false
}
