package history

import (
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// Changes lists the annotations and edits of a commit on the history of tip, oldest first,
// with their content. When one is damaged the error is a *[commit.DamagedError].
func Changes(ctx context.Context, r objects.Reader, tip, id objects.ID) ([]*commit.Commit, error) {
	var list []*commit.Commit
	merged := false
	for c, err := range commit.Walk(ctx, r, tip, 0, id) {
		if errors.As(err, new(*objects.DivergedError)) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if merged = c.Op == commit.Merge; merged {
			break
		}
		if c.Target == id {
			list = append(list, c)
		}
	}
	slices.Reverse(list)
	if merged {
		line, err := commit.Linearize(ctx, r, tip)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(line, func(c *commit.Commit) bool { return c.Target != id })
	}
	return list, LoadAll(ctx, r, list)
}

// ChangeKey identifies the property that a change sets: the content of a commit, which an edit
// changes, or its priority, which an annotation changes.
type ChangeKey struct {
	Target objects.ID
	Op     commit.Op // Edit or Annotate
}

// LatestChanges returns the last edit and the last annotation of each commit in a line of
// commits, oldest first, and their keys in the order of the first change.
func LatestChanges(line []*commit.Commit) (latest map[ChangeKey]*commit.Commit, order []ChangeKey) {
	latest = map[ChangeKey]*commit.Commit{}
	for _, c := range line {
		if c.Op != commit.Edit && c.Op != commit.Annotate {
			continue
		}
		key := ChangeKey{c.Target, c.Op}
		if latest[key] == nil {
			order = append(order, key)
		}
		latest[key] = c
	}
	return latest, order
}
