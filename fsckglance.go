package tract

import (
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// glance is what can be seen of some objects that lie together without any others. It is
// the larger part of the work, and done beside other glances.
type glance struct {
	graph *graph
	list  []objects.Object
	sizes []int64                // of what each is, or says of its content
	feet  []commit.Footing       // of the commits
	says  []bool                 // which of the commits have content
	late  map[int]*commit.Commit // what derives from others than the commit before
	wrong map[int]error          // what makes no sense

	two  [2]commit.Commit // the commit at hand, and the one before it
	last *commit.Commit   // that one; nil: it makes no sense
}

var glances = sync.Pool{New: func() any { return &glance{late: map[int]*commit.Commit{}, wrong: map[int]error{}} }}

// glance looks at objects, in any goroutine. It keeps the list until that is taken in.
func (g *graph) glance(list []objects.Object) *glance {
	l := glances.Get().(*glance)
	l.graph, l.list, l.last = g, list, nil
	l.sizes, l.feet, l.says = l.sizes[:0], l.feet[:0], l.says[:0]
	clear(l.late)
	clear(l.wrong)
	for i := range list {
		o := &list[i]
		size, err := int64(0), error(nil)
		switch o.Kind {
		case objects.KindCommit:
			size, err = l.commit(i, o)
		case objects.KindContent:
			size, err = int64(len(o.Data)), content.Check(o.Data)
		case objects.KindList:
			size, err = commit.ContentSize(*o)
		case objects.KindOrigin:
			_, err = commit.ParseOrigin(*o)
		case objects.KindLabel:
			_, err = commit.ParseLabel(*o)
		}
		if l.sizes = append(l.sizes, size); err != nil {
			l.wrong[i] = cause(err)
		}
	}
	return l
}

// commit looks at a commit: at all of it when it follows the one before, as most do.
func (l *glance) commit(i int, o *objects.Object) (size int64, err error) {
	c := &l.two[0]
	if c == l.last {
		c = &l.two[1]
	}
	parent := l.last
	if err := c.Reparse(*o); err != nil {
		l.last, l.feet, l.says = nil, append(l.feet, commit.Footing{}), append(l.says, false)
		return 0, err
	}
	l.last, l.feet, l.says = c, append(l.feet, c.Footing()), append(l.says, !c.Content.IsZero())
	switch {
	case len(c.Parents) == 0:
		err = c.CheckDerived(nil, nil, nil)
	case len(c.Parents) == 1 && parent != nil && parent.ID == c.Parents[0]:
		err = c.CheckDerived(parent, nil, nil)
	default:
		l.late[i] = c.Clone()
	}
	return c.Size, err
}

// take takes the objects into the graph, and passes on those that are new.
func (l *glance) take(fresh func(*objects.Object) error) error {
	g := l.graph
	commits := 0
	for i := range l.list {
		o := &l.list[i]
		foot := commits
		if o.Kind == objects.KindCommit {
			commits++
		}
		n := g.own(o.ID)
		if g.nodes[n].kind != 0 && !g.nodes[n].erased {
			continue
		}
		one := node{kind: o.Kind, parents: uint16(len(o.Parents)), links: uint16(len(o.Links)), edges: int64(len(g.edges)), size: l.sizes[i]}
		for _, id := range o.Parents {
			g.edges = append(g.edges, g.number(id))
		}
		for _, id := range o.Links {
			g.edges = append(g.edges, g.number(id))
		}
		if o.Kind == objects.KindCommit {
			one.foot, one.says = int32(len(g.feet)), l.says[foot]
			g.feet = append(g.feet, l.feet[foot])
		}
		g.nodes[n] = one
		if err := l.settle(i, n); err != nil {
			return err
		}
		if err := fresh(o); err != nil {
			return err
		}
	}
	glances.Put(l)
	return nil
}

// settle tells what is wrong with an object, and checks the commits that can be now.
func (l *glance) settle(i int, n int32) error {
	g := l.graph
	if len(l.wrong) > 0 {
		if err := l.wrong[i]; err != nil {
			if err := g.wrong(l.list[i].ID, err); err != nil {
				return err
			}
		}
	}
	if len(l.late) > 0 {
		if c := l.late[i]; c != nil {
			if err := g.derived(c); err != nil {
				return err
			}
		}
	}
	if len(g.waiting) == 0 {
		return nil
	}
	for _, child := range g.waiting[n] {
		if err := g.derived(child); err != nil {
			return err
		}
	}
	delete(g.waiting, n)
	return nil
}
