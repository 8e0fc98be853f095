package commit

import (
	"context"

	"github.com/tract-vcs/tract/objects"
)

// Linearize returns a whole history in the order of the prompt, oldest first: at a merge, the line of
// the first parent, then what the second parent brings, then what follows. Every commit is in it
// once, and after its parents.
func Linearize(ctx context.Context, r objects.Reader, tip objects.ID) ([]*Commit, error) {
	l := linearizer{r: r}
	if err := l.add(ctx, tip); err != nil {
		return nil, err
	}
	return l.list, nil
}

// IncomingCommits returns what a second history has beyond a first, in the order of Line.
func IncomingCommits(ctx context.Context, r objects.Reader, first, second objects.ID) ([]*Commit, error) {
	only := map[objects.ID]bool{}
	for c, err := range History(ctx, r, []objects.ID{second}, []objects.ID{first}) {
		if err != nil {
			return nil, err
		}
		only[c.ID] = true
	}
	l := linearizer{r: r, only: only, done: map[objects.ID]bool{}}
	if err := l.add(ctx, second); err != nil {
		return nil, err
	}
	return l.list, nil
}

// linearizer appends one history after another. With a commit it always has all its ancestors.
type linearizer struct {
	r    objects.Reader
	list []*Commit
	done map[objects.ID]bool // nil until there is a merge
	only map[objects.ID]bool // nil: all
}

func (l *linearizer) add(ctx context.Context, tip objects.ID) error {
	var chain []*Commit
	if l.only != nil && !l.only[tip] {
		return nil
	}
	for c, err := range Walk(ctx, l.r, tip, 0) {
		if err != nil {
			return err
		}
		if l.done[c.ID] || l.only != nil && !l.only[c.ID] {
			break
		}
		if c.Op == Merge && l.done == nil {
			l.done = map[objects.ID]bool{}
		}
		chain = append(chain, c)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		c := chain[i]
		if c.Op == Merge {
			if err := l.add(ctx, c.SecondParent()); err != nil {
				return err
			}
		}
		if l.done != nil {
			l.done[c.ID] = true
		}
		l.list = append(l.list, c)
	}
	return nil
}
