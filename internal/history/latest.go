package history

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// ChangeKey is what a change is about: the content of a commit, which an edit changes, or
// its priority, which an annotation changes.
type ChangeKey struct {
	Target objects.ID
	Op     commit.Op // Edit or Annotate
}

// LatestChanges returns the last edit and annotation of each commit on a line of commits,
// oldest first, and what they are about in the order of the first change.
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
