package commit

import (
	"context"

	"github.com/tract-vcs/tract/objects"
)

// Linearize gives a whole history in the order in which a prompt is made of it, oldest
// first: the line of the first parent, then what the second brings beyond it, then
// what follows. Every commit is in it once, and after its parents.
func Linearize(ctx context.Context, r objects.Reader, tip objects.ID) ([]*Commit, error) {
	l := liner{r: r}
	if err := l.add(ctx, tip); err != nil {
		return nil, err
	}
	return l.line, nil
}

// IncomingCommits gives what a second history has beyond a first, in the order of Line.
func IncomingCommits(ctx context.Context, r objects.Reader, first, second objects.ID) ([]*Commit, error) {
	only := map[objects.ID]bool{}
	for c, err := range History(ctx, r, []objects.ID{second}, []objects.ID{first}) {
		if err != nil {
			return nil, err
		}
		only[c.ID] = true
	}
	l := liner{r: r, only: only, have: map[objects.ID]bool{}}
	if err := l.add(ctx, second); err != nil {
		return nil, err
	}
	return l.line, nil
}

// liner puts histories one after the other. What it has is complete: with a commit
// everything before it.
type liner struct {
	r    objects.Reader
	line []*Commit
	have map[objects.ID]bool // nil until there is a merge
	only map[objects.ID]bool // nil: all
}

func (l *liner) add(ctx context.Context, tip objects.ID) error {
	var chain []*Commit
	if l.only != nil && !l.only[tip] {
		return nil
	}
	for c, err := range Walk(ctx, l.r, tip, 0) {
		if err != nil {
			return err
		}
		if l.have[c.ID] || l.only != nil && !l.only[c.ID] {
			break
		}
		if c.Op == Merge && l.have == nil {
			l.have = map[objects.ID]bool{}
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
		if l.have != nil {
			l.have[c.ID] = true
		}
		l.line = append(l.line, c)
	}
	return nil
}
