package history

import (
	"context"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// Write adds the drafts that make returns for the tip of a ref, nil when there is none, in
// one batch, and returns their commits. It lands on the tip as it is by then: make is
// called again when the ref moved meanwhile. Without drafts nothing is written. header
// reads the header of a commit; nil is commit.Read.
func Write(
	ctx context.Context, s objects.Store, ref string, note objects.Note,
	header func(context.Context, objects.ID) (*commit.Commit, error), make func(tip *commit.Commit) ([]commit.Draft, error),
) (commits []*commit.Commit, err error) {
	if header == nil {
		header = func(ctx context.Context, id objects.ID) (*commit.Commit, error) { return commit.Read(ctx, s, id) }
	}
	err = s.Update(ctx, ref, func(at objects.ID) (objects.Batch, error) {
		var tip *commit.Commit
		commits, err = nil, nil
		if !at.IsZero() {
			tip, err = header(ctx, at)
		}
		if err != nil {
			return objects.Batch{}, err
		}
		drafts, err := make(tip)
		if err != nil || len(drafts) == 0 {
			return objects.Batch{}, err
		}
		b := objects.Batch{Note: note}
		if commits, b.Put, err = commit.Write(tip, drafts...); err != nil {
			return objects.Batch{}, err
		}
		b.Refs = []objects.RefUpdate{{Name: ref, Old: at, New: commits[len(commits)-1].ID}}
		return b, nil
	})
	if err != nil {
		return nil, err
	}
	return commits, nil
}
