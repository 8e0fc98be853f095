package tract

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// graph is which objects there are and what they lead to, small enough for all of a
// large store. It checks commits as they come, in any order.
type graph struct {
	nodes []node
	ids   idTable // of the nodes
	edges []int32 // parents and then links of all nodes

	feet    []commit.Footing // of commits
	waiting map[int32][]*commit.Commit
	merges  []*commit.Commit
	sizes   []saidSize
	wrong   func(id objects.ID, what error) error // tells of an object that makes no sense
}

// node is one object.
type node struct {
	kind    objects.Kind // 0: something leads to it, and it was not seen
	erased  bool         // it is a tombstone
	parents uint16
	links   uint16
	foot    int32 // where its footing is
	edges   int64 // where its edges begin
	size    int64 // of the content record
}

// saidSize is what a commit says of its content.
type saidSize struct {
	commit, content int32
	size            int64
}

// newGraph makes a graph with room for about so many objects.
func newGraph(about int, wrong func(objects.ID, error) error) *graph {
	return &graph{
		nodes: make([]node, 0, about), ids: newIDTable(about), edges: make([]int32, 0, 2*about),
		feet: make([]commit.Footing, 0, about/2), sizes: make([]saidSize, 0, about/2),
		waiting: map[int32][]*commit.Commit{}, wrong: wrong,
	}
}

// find gives the number of the node of an id.
func (g *graph) find(id objects.ID) (n int32, ok bool) { return g.ids.find(id) }

// number is find, and makes the node.
func (g *graph) number(id objects.ID) int32 {
	n, fresh := g.ids.number(id)
	if fresh {
		g.nodes = append(g.nodes, node{})
	}
	return n
}

// has tells whether an object was seen.
func (g *graph) has(id objects.ID) bool {
	n, ok := g.find(id)
	return ok && g.nodes[n].kind != 0
}

// add takes in an object. It tells whether it is new.
func (g *graph) add(o objects.Object) (fresh bool, err error) {
	n := g.number(o.ID)
	if g.nodes[n].kind != 0 && !g.nodes[n].erased {
		return false, nil
	}
	one := node{kind: o.Kind, parents: uint16(len(o.Parents)), links: uint16(len(o.Links)), edges: int64(len(g.edges))}
	for _, ids := range [][]objects.ID{o.Parents, o.Links} {
		for _, id := range ids {
			g.edges = append(g.edges, g.number(id))
		}
	}
	switch o.Kind {
	case objects.KindCommit:
		one.foot = int32(len(g.feet))
		g.feet = append(g.feet, commit.Footing{})
		g.nodes[n] = one
		return true, g.commit(n, o)
	case objects.KindContent:
		one.size = int64(len(o.Data))
		_, err = content.Decode(o.Data)
	case objects.KindList:
		one.size, err = commit.ContentSize(o)
	case objects.KindOrigin:
		_, err = commit.ParseOrigin(o)
	case objects.KindLabel:
		_, err = commit.ParseLabel(o)
	}
	if g.nodes[n] = one; err != nil {
		return true, g.wrong(o.ID, cause(err))
	}
	return true, nil
}

// bury takes in a tombstone, unless the object is there. It tells whether it is new.
func (g *graph) bury(t objects.Tombstone) (fresh bool) {
	n := g.number(t.ID)
	if g.nodes[n].kind != 0 {
		return false
	}
	g.nodes[n] = node{kind: t.Kind, erased: true, edges: int64(len(g.edges)), size: t.Size}
	return true
}

// cause is an error without the words that name the object.
func cause(err error) error {
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
		return c.Cause
	}
	return err
}

// commit checks what a commit says of its parent and of its content, or keeps it until
// they come.
func (g *graph) commit(n int32, o objects.Object) error {
	c, err := commit.Parse(o)
	if err != nil {
		return g.wrong(o.ID, cause(err))
	}
	g.feet[g.nodes[n].foot] = c.Footing()
	if !c.Content.IsZero() {
		g.sizes = append(g.sizes, saidSize{n, g.number(c.Content), c.Size})
	}
	for _, child := range g.waiting[n] {
		if err := g.derived(child, n); err != nil {
			return err
		}
	}
	delete(g.waiting, n)
	if len(c.Parents) == 0 {
		return g.derived(c, -1)
	}
	parent := g.number(c.Parents[0])
	if g.nodes[parent].kind == 0 {
		g.waiting[parent] = append(g.waiting[parent], c)
		return nil
	}
	return g.derived(c, parent)
}

func (g *graph) derived(c *commit.Commit, parent int32) error {
	var on *commit.Footing
	if parent >= 0 {
		if g.nodes[parent].kind != objects.KindCommit {
			return g.wrong(c.ID, fmt.Errorf("its parent is a %s", g.nodes[parent].kind))
		}
		on = &g.feet[g.nodes[parent].foot]
	}
	if c.Second() != (objects.ID{}) {
		g.merges = append(g.merges, c) // what they bring is known when all is there
		return nil
	}
	if err := on.Check(c); err != nil {
		return g.wrong(c.ID, cause(err))
	}
	return nil
}

// settle checks what could not be checked before everything had come.
func (g *graph) settle() error {
	for _, s := range g.sizes {
		at := g.nodes[s.content]
		err := error(nil)
		switch {
		case at.kind == 0: // missing, or damaged, which is told
		case at.kind != objects.KindContent && at.kind != objects.KindList:
			err = fmt.Errorf("its content is a %s", at.kind)
		case at.size != s.size:
			err = fmt.Errorf("its content has %d bytes, and must have %d", at.size, s.size)
		}
		if err != nil {
			if err := g.wrong(g.ids.at[s.commit], err); err != nil {
				return err
			}
		}
	}
	return nil
}

// out gives the nodes that one leads to.
func (g *graph) out(n int32) []int32 {
	at := g.nodes[n]
	return g.edges[at.edges : at.edges+int64(at.parents)+int64(at.links)]
}

// reach marks everything that roots lead to, itself included.
func (g *graph) reach(roots []objects.ID) []bool {
	reached := make([]bool, len(g.nodes))
	var todo []int32
	visit := func(n int32) {
		if !reached[n] {
			reached[n] = true
			todo = append(todo, n)
		}
	}
	for _, id := range roots {
		if n, ok := g.find(id); ok {
			visit(n)
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range g.out(n) {
			visit(to)
		}
	}
	return reached
}

// back gives for each node those that lead to it.
func (g *graph) back() [][]int32 {
	back := make([][]int32, len(g.nodes))
	for n := range g.nodes {
		for _, to := range g.out(int32(n)) {
			back[to] = append(back[to], int32(n))
		}
	}
	return back
}
