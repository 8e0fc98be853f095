package tract

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// graph is which objects there are and what they lead to, small enough for all of a
// large store. It checks commits as they come, in any order.
type graph struct {
	nodes []node
	ids   objects.IDTable // of the nodes
	edges []int32         // parents and then links of all nodes

	feet    []commit.Footing // of commits
	waiting map[int32][]*commit.Commit
	merges  []*commit.Commit
	wrong   func(id objects.ID, what error) error // tells of an object that makes no sense
}

// node is one object.
type node struct {
	kind    objects.Kind // 0: something leads to it, and it was not seen
	erased  bool         // it is a tombstone
	says    bool         // it is a commit with content
	parents uint16
	links   uint16
	foot    int32 // where its footing is
	edges   int64 // where its edges begin
	size    int64 // of the content record; of a commit what it says of that
}

// newGraph makes a graph with room for about so many objects.
func newGraph(about int, wrong func(objects.ID, error) error) *graph {
	g := &graph{
		nodes: make([]node, 0, about), ids: objects.NewIDTable(about), edges: make([]int32, 0, 2*about),
		feet:    make([]commit.Footing, 0, about/2),
		waiting: map[int32][]*commit.Commit{}, wrong: wrong,
	}
	return g
}

// find gives the number of the node of an id.
func (g *graph) find(id objects.ID) (n int32, ok bool) { return g.ids.Find(id) }

// number is find, and makes the node.
func (g *graph) number(id objects.ID) int32 {
	n, fresh := g.ids.Number(id)
	if fresh {
		g.nodes = append(g.nodes, node{})
	}
	return n
}

// own is number of an object that has come: few have been led to before.
func (g *graph) own(id objects.ID) int32 {
	n, fresh := g.ids.Add(id)
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

// derived checks what a commit derives from its parent, or keeps it until that comes.
func (g *graph) derived(c *commit.Commit) error {
	if c.Second() != (objects.ID{}) {
		g.merges = append(g.merges, c) // what they bring is known when all is there
		return nil
	}
	parent := g.number(c.Parent())
	at := g.nodes[parent]
	switch at.kind {
	case 0:
		g.waiting[parent] = append(g.waiting[parent], c)
		return nil
	case objects.KindCommit:
		if err := g.feet[at.foot].Check(c); err != nil {
			return g.wrong(c.ID, cause(err))
		}
		return nil
	}
	return g.wrong(c.ID, fmt.Errorf("its parent is a %s", at.kind))
}

// settle checks what could not be checked before everything had come: what commits say
// of their content.
func (g *graph) settle() error {
	for n := range g.nodes {
		at := &g.nodes[n]
		if !at.says {
			continue
		}
		what := &g.nodes[g.content(int32(n))]
		err := error(nil)
		switch {
		case what.kind == 0: // missing, or damaged, which is told
		case what.kind != objects.KindContent && what.kind != objects.KindList:
			err = fmt.Errorf("its content is a %s", what.kind)
		case what.size != at.size:
			err = fmt.Errorf("its content has %d bytes, and must have %d", what.size, at.size)
		}
		if err != nil {
			if err := g.wrong(g.ids.ID(int32(n)), err); err != nil {
				return err
			}
		}
	}
	return nil
}

// content is the first link of a commit that has content.
func (g *graph) content(n int32) int32 {
	at := &g.nodes[n]
	return g.edges[at.edges+int64(at.parents)]
}

// out gives the nodes that one leads to.
func (g *graph) out(n int32) []int32 {
	at := &g.nodes[n]
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
