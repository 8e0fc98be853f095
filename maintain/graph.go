package maintain

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/objects"
)

// graph is the objects of a store and their links.
type graph struct {
	seed    maphash.Seed
	numbers map[uint64]int32 // of nodes, by the hashes of their ids
	nodes   []node
	ids     []objects.ID // of the nodes
	edges   []int32      // parents and then links of all nodes

	wrong func(id objects.ID, what error) error // reports an object that matches its id and is not valid
}

// node is one object.
type node struct {
	kind       objects.Kind // 0: it is linked to, and was not seen
	purged     bool         // it is a tombstone
	parsed     bool         // it is a commit with a valid record
	hasContent bool         // it is a commit with content
	parents    uint16
	links      uint16
	depth      uint32 // of a commit
	edges      uint32 // where its edges begin
	size       uint32 // of the content record; of a commit, the size that it gives for that
}

// newGraph makes a graph with room for about so many objects, and for some that are written
// meanwhile: lists that grow would take twice the memory.
func newGraph(about int, wrong func(objects.ID, error) error) *graph {
	about += about / 32
	return &graph{
		seed: maphash.MakeSeed(), numbers: make(map[uint64]int32, about), nodes: make([]node, 0, about),
		ids: make([]objects.ID, 0, about), edges: make([]int32, 0, about+about/2), wrong: wrong,
	}
}

// find gives the number of the node of an id.
func (g *graph) find(id objects.ID) (n int32, ok bool) {
	n, ok = g.numbers[hashOf(g.seed, id)]
	return n, ok
}

// hashOf returns a hash of an id, which takes less memory. Two ids have the same one with a
// probability of 2^-64.
func hashOf(seed maphash.Seed, id objects.ID) uint64 { return maphash.Bytes(seed, id[:]) }

// findOrAdd is find, but adds a missing node.
func (g *graph) findOrAdd(id objects.ID) int32 {
	n, ok := g.find(id)
	if !ok {
		n = int32(len(g.nodes))
		g.numbers[hashOf(g.seed, id)] = n
		g.nodes, g.ids = append(g.nodes, node{}), append(g.ids, id)
	}
	return n
}

// has reports whether an object was seen.
func (g *graph) has(id objects.ID) bool {
	n, ok := g.find(id)
	return ok && g.nodes[n].kind != 0
}

// addTombstone adds a tombstone, unless the object is there. It reports whether it is new.
func (g *graph) addTombstone(t objects.Tombstone) (fresh bool) {
	n := g.findOrAdd(t.ID)
	if g.nodes[n].kind != 0 {
		return false
	}
	g.nodes[n] = node{kind: t.Kind, purged: true, edges: uint32(len(g.edges)), size: clampToUint32(t.Size)}
	return true
}

// withoutObjectName returns the cause of a *objects.CorruptError, without the name of the object, or err itself.
func withoutObjectName(err error) error {
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
		return c.Cause
	}
	return err
}

// add adds objects, and calls fresh with those that are new.
func (g *graph) add(list []objects.Object, onNew func(*objects.Object) error) error {
	for i := range list {
		o := &list[i]
		n := g.findOrAdd(o.ID)
		if g.nodes[n].kind != 0 && !g.nodes[n].purged {
			continue
		}
		one, bad := parseNode(o)
		one.edges = uint32(len(g.edges))
		for _, ids := range [2][]objects.ID{o.Parents, o.Links} {
			for _, id := range ids {
				g.edges = append(g.edges, g.findOrAdd(id))
			}
		}
		g.nodes[n] = one
		if bad != nil {
			if err := g.wrong(o.ID, withoutObjectName(bad)); err != nil {
				return err
			}
		}
		if err := onNew(o); err != nil {
			return err
		}
	}
	return nil
}

// parseNode reads the record of an object.
func parseNode(o *objects.Object) (n node, err error) {
	n = node{kind: o.Kind, parents: uint16(len(o.Parents)), links: uint16(len(o.Links))}
	switch o.Kind {
	case objects.KindCommit:
		var c *commit.Commit
		if c, err = commit.Parse(*o); err == nil {
			n.parsed, n.hasContent, n.depth, n.size = true, !c.ContentID.IsZero(), clampToUint32(c.Depth), clampToUint32(c.Size)
		}
	case objects.KindContent:
		n.size, err = uint32(len(o.Data)), content.Check(o.Data)
	case objects.KindList:
		var size int64
		size, err = commit.ContentSize(*o)
		n.size = clampToUint32(size)
	case objects.KindOrigin:
		_, err = commit.ParseOrigin(*o)
	case objects.KindLabel:
		_, err = commit.ParseLabel(*o)
	case objects.KindBody:
		err = requestbody.Check(*o)
	}
	return n, err
}

// checkCommits checks what commits derive from their parents and their content, once all
// objects were added.
func (g *graph) checkCommits() error {
	for n := range g.nodes {
		if !g.nodes[n].parsed {
			continue
		}
		for _, invalid := range [2]error{g.checkDepth(int32(n)), g.checkContentKindAndSize(int32(n))} {
			if invalid == nil {
				continue
			}
			if err := g.wrong(g.ids[n], invalid); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDepth returns what is wrong with the depth of a commit whose parents are all known; nil: nothing.
func (g *graph) checkDepth(n int32) (invalid error) {
	at, want := &g.nodes[n], uint32(0)
	for _, p := range g.linksFrom(n)[:at.parents] {
		parent := &g.nodes[p]
		switch {
		case parent.kind == 0 || parent.kind == objects.KindCommit && !parent.parsed: // missing or damaged, which is reported
			return nil
		case parent.kind != objects.KindCommit:
			return fmt.Errorf("its parent is a %s", parent.kind)
		}
		want = max(want, parent.depth+1)
	}
	if at.depth != want {
		return fmt.Errorf("commit record: depth is %d, want %d", at.depth, want)
	}
	return nil
}

// checkContentKindAndSize returns what is wrong if the content of a commit has not the kind and size
// that the commit states. A missing or damaged content is no error here: it is reported elsewhere.
func (g *graph) checkContentKindAndSize(n int32) (invalid error) {
	of, ok := g.contentNode(n)
	if !ok {
		return nil
	}
	at, what := &g.nodes[n], &g.nodes[of]
	switch {
	case what.kind == 0: // missing or damaged, which is reported
	case what.kind != objects.KindContent && what.kind != objects.KindList:
		return fmt.Errorf("its content is a %s", what.kind)
	case what.size != at.size:
		return fmt.Errorf("its content has %d bytes, and must have %d", what.size, at.size)
	}
	return nil
}

// contentNode returns the node of the content of commit n, which is its first link. ok is false if n
// has no content or is no commit.
func (g *graph) contentNode(n int32) (contentNode int32, ok bool) {
	at := &g.nodes[n]
	if !at.hasContent {
		return 0, false
	}
	return g.edges[at.edges+uint32(at.parents)], true
}

// linksFrom returns the nodes that a node links to.
func (g *graph) linksFrom(n int32) []int32 {
	at := &g.nodes[n]
	return g.edges[at.edges : at.edges+uint32(at.parents)+uint32(at.links)]
}

// reachableFromIDs marks the nodes that can be reached from roots, which are included.
func (g *graph) reachableFromIDs(roots []objects.ID) []bool {
	var list []int32
	for _, id := range roots {
		if n, ok := g.find(id); ok {
			list = append(list, n)
		}
	}
	return g.reachableFrom(list)
}

// reachableFrom is reachableFromIDs for the numbers of nodes.
func (g *graph) reachableFrom(roots []int32) []bool {
	reached := make([]bool, len(g.nodes))
	var todo []int32
	visit := func(n int32) {
		if !reached[n] {
			reached[n] = true
			todo = append(todo, n)
		}
	}
	for _, n := range roots {
		visit(n)
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range g.linksFrom(n) {
			visit(to)
		}
	}
	return reached
}

// clampToUint32 makes a small number of one that no valid record exceeds.
func clampToUint32[T int64 | uint64](v T) uint32 { return uint32(min(v, math.MaxUint32)) }

// referrers returns for each node those that link to it.
func (g *graph) referrers() [][]int32 {
	back := make([][]int32, len(g.nodes))
	for n := range g.nodes {
		for _, to := range g.linksFrom(int32(n)) {
			back[to] = append(back[to], int32(n))
		}
	}
	return back
}
