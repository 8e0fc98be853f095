package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// Read gives the header of one commit. Its block is not loaded.
func Read(ctx context.Context, r objects.Reader, id objects.ID) (*Commit, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", id.Short(), err)
	}
	return Parse(obj)
}

// ReadHeaders gives the headers of some commits, in the order asked.
func ReadHeaders(ctx context.Context, r objects.Reader, ids []objects.ID) ([]*Commit, error) {
	known := make(map[objects.ID]*Commit, len(ids))
	for obj, err := range r.Get(ctx, ids) {
		if err != nil {
			return nil, fmt.Errorf("read commits: %w", err)
		}
		c, err := Parse(obj)
		if err != nil {
			return nil, err
		}
		known[c.ID] = c
	}
	list := make([]*Commit, len(ids))
	for i, id := range ids {
		if list[i] = known[id]; list[i] == nil {
			return nil, fmt.Errorf("read commit %s: %w", id.Short(), &objects.NotFoundError{ID: id})
		}
	}
	return list, nil
}

// Walk yields the headers of tip, its first parent, and so on; limit and stop
// are as in [objects.ChainOptions]. An error is the last element.
func Walk(ctx context.Context, r objects.Reader, tip objects.ID, limit int, stop ...objects.ID) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		var room []Commit // one by one they take as long to make as to read
		var parents []objects.ID
		size := 1
		for c, err := range WalkReuse(ctx, r, tip, limit, stop...) {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(room) == 0 {
				room, parents = make([]Commit, size), make([]objects.ID, 0, size)
				size = min(2*size, walkRoom)
			}
			kept := &room[0]
			if room, *kept = room[1:], *c; len(c.Parents) > 0 {
				from := len(parents)
				parents = append(parents, c.Parents...)
				kept.Parents = parents[from:len(parents):len(parents)]
			}
			if !yield(kept, nil) {
				return
			}
		}
	}
}

// WalkReuse is Walk for who keeps nothing: a commit is good until the next one is asked
// for, or the loop ends, and only what Load fills in may be changed in it.
// [Commit.Clone] lasts.
func WalkReuse(ctx context.Context, r objects.Reader, tip objects.ID, limit int, stop ...objects.ID) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		var c Commit
		for run, err := range objects.ChainRuns(ctx, r, tip, limit, stop...) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !c.yieldRun(&run, yield) {
				return
			}
		}
	}
}

// yieldRun parses each commit of a run into c and yields it. It reports whether the walk goes
// on with the next run.
func (c *Commit) yieldRun(run *objects.CommitRun, yield func(*Commit, error) bool) bool {
	for i := range run.Objects {
		author := c.Author
		*c = Commit{}
		if err := c.read(&run.Objects[i], author); err != nil {
			yield(nil, err)
			return false
		}
		c.Locator = run.Locator(i)
		if !yield(c, nil) {
			return false
		}
	}
	return true
}

// Clone is a copy that shares nothing with c but its block, origin and words.
func (c *Commit) Clone() *Commit {
	own := *c
	own.Parents = slices.Clone(c.Parents)
	return &own
}

// walkRoom is most commits that a walk makes at once. They stay in memory together.
const walkRoom = 32

// ReadOrigin gives an origin; nil for the zero id.
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

// ReadLabel gives a label; zero for the zero id, and when its words were erased.
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
