package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// Read reads the header of one commit, without its block.
func Read(ctx context.Context, r objects.Reader, id objects.ID) (*Commit, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", id.Short(), err)
	}
	return Parse(obj)
}

// ReadHeaders reads the headers of some commits, in the order of ids.
func ReadHeaders(ctx context.Context, r objects.Reader, ids []objects.ID) ([]*Commit, error) {
	known, err := objects.ReadAll(ctx, r, ids, Parse)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	list := make([]*Commit, len(ids))
	for i, id := range ids {
		if list[i] = known[id]; list[i] == nil {
			return nil, fmt.Errorf("read commit %s: %w", id.Short(), &objects.NotFoundError{ID: id})
		}
	}
	return list, nil
}

// Walk yields the headers of tip, its first parent, and so on; limit and stop are as in
// [objects.ChainOptions]. An error is the last element.
func Walk(ctx context.Context, r objects.Reader, tip objects.ID, limit int, stop ...objects.ID) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		for c, err := range WalkReuse(ctx, r, tip, limit, stop...) {
			if err == nil {
				c = c.Clone()
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// WalkReuse is Walk with one Commit for all: it is valid until the loop goes on or ends, and only
// what Load sets may be changed in it. Clone makes a copy that lasts.
func WalkReuse(ctx context.Context, r objects.Reader, tip objects.ID, limit int, stop ...objects.ID) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		var c Commit
		for run, err := range objects.ChainRuns(ctx, r, tip, limit, stop...) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range run.Objects {
				if err := c.parse(&run.Objects[i]); err != nil {
					yield(nil, err)
					return
				}
				c.Locator = run.Locator(i)
				if !yield(&c, nil) {
					return
				}
			}
		}
	}
}

// WalkAll yields the headers of all commits that tips reach by any parent, each once,
// history by history. Commits in seen, and their ancestors, are left out; it adds to seen
// what it yields. A nil seen is empty. An error is the last element.
func WalkAll(ctx context.Context, r objects.Reader, tips []objects.ID, seen map[objects.ID]bool) iter.Seq2[*Commit, error] {
	if seen == nil {
		seen = map[objects.ID]bool{}
	}
	return func(yield func(*Commit, error) bool) {
		for len(tips) > 0 {
			tip := tips[0]
			tips = tips[1:]
			if seen[tip] {
				continue
			}
			for c, err := range Walk(ctx, r, tip, 0) {
				if err == nil && seen[c.ID] {
					break
				}
				if !yield(c, err) || err != nil {
					return
				}
				seen[c.ID] = true
				if len(c.Parents) > 1 {
					tips = append(tips, c.Parents[1:]...)
				}
			}
		}
	}
}

// Clone returns a copy that shares nothing with c but its block, origin and label.
func (c *Commit) Clone() *Commit {
	own := *c
	own.Parents = slices.Clone(c.Parents)
	return &own
}

// ReadOrigin reads an origin; nil for the zero id.
func ReadOrigin(ctx context.Context, r objects.Reader, id objects.ID) (*Origin, error) {
	if id.IsZero() {
		return nil, nil
	}
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read origin: %w", err)
	}
	return ParseOrigin(obj)
}

// ReadLabel reads a label. It is zero for the zero id, and when the label was purged.
func ReadLabel(ctx context.Context, r objects.Reader, id objects.ID) (Label, error) {
	if id.IsZero() {
		return Label{}, nil
	}
	obj, err := objects.Read(ctx, r, id)
	if errors.Is(err, objects.ErrPurged) {
		return Label{}, nil
	}
	if err != nil {
		return Label{}, fmt.Errorf("read label: %w", err)
	}
	return ParseLabel(obj)
}
