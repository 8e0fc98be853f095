package commit

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// History yields the commits that can be reached from tips and not from without, by both parents,
// each once and before its parents. The order is that of [Linearize] backwards: after a merge the
// commits that the second parent brings, newest first. It reads little more than it yields. An
// error is the last element.
func History(ctx context.Context, r objects.Reader, tips, without []objects.ID) iter.Seq2[*Commit, error] {
	return history(ctx, r, tips, without, defaultMaxDepthGap)
}

func history(ctx context.Context, r objects.Reader, tips, without []objects.ID, maxDepthGap uint64) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		h := &historyWalk{frontier: newFrontier(r), maxDepthGap: maxDepthGap}
		err := h.start(ctx, tips, without)
		for err == nil {
			var n *node
			if n, err = h.popReady(ctx); n == nil {
				break
			}
			if !yield(n.Commit, nil) {
				return
			}
			err = h.makeParentsReady(ctx, n)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// NewestFirst yields the headers of all commits that tips reach, each once, by their time, the newest
// first. A commit comes before its parents unless its time is before theirs. It reads up to 256 commits
// of a history ahead. An error is the last element.
func NewestFirst(ctx context.Context, r objects.Reader, tips []objects.ID) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		f := newFrontier(r)
		f.heap.before = (*node).compareNewestFirst
		seen := map[objects.ID]bool{}
		err := f.reachAll(ctx, tips, func(int) sides { return fromA })
		for err == nil && f.active > 0 {
			c, _ := f.pop()
			if seen[c.ID] = true; !yield(c, nil) {
				return
			}
			for _, id := range c.Parents {
				if err == nil && !seen[id] { // else another child has led to it
					err = f.reach(ctx, id, fromA)
				}
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// historyWalk yields a commit once all its children were yielded, and follows one line as long as
// that allows.
type historyWalk struct {
	*frontier
	maxDepthGap uint64  // a parent with a larger gap to its child waits until the current line ends
	tips        []*node // the deepest is last
	ready       []*node // the next to yield is last
}

func (h *historyWalk) start(ctx context.Context, tips, without []objects.ID) error {
	h.pending = map[objects.ID]*node{}
	err := h.reachAll(ctx, append(tips[:len(tips):len(tips)], without...), func(i int) sides {
		if i < len(tips) {
			return fromA
		}
		return stale
	})
	for _, id := range tips {
		if n := h.pending[id]; n != nil && !slices.Contains(h.tips, n) {
			h.tips = append(h.tips, n)
		}
	}
	slices.SortFunc(h.tips, func(a, b *node) int { return b.compareDeepestFirst(a) })
	return err
}

// popReady removes the commit to yield next, and returns it; nil: there is none.
func (h *historyWalk) popReady(ctx context.Context) (*node, error) {
	for len(h.ready) == 0 && len(h.tips) > 0 {
		tip := h.tips[len(h.tips)-1]
		h.tips = h.tips[:len(h.tips)-1]
		if err := h.exploreDeeperThan(ctx, tip.Depth); err != nil {
			return nil, err
		}
		if h.pending[tip.ID] == tip && tip.sides&stale == 0 && tip.children == 0 {
			h.ready = append(h.ready, tip)
		}
	}
	if len(h.ready) == 0 {
		return nil, nil
	}
	n := h.ready[len(h.ready)-1]
	h.ready = h.ready[:len(h.ready)-1]
	return n, nil
}

// makeParentsReady makes those parents of n ready of which n was the last child. A second parent that
// is far back waits until the current line ends, since everything deeper would be read first.
func (h *historyWalk) makeParentsReady(ctx context.Context, n *node) error {
	if len(n.Parents) > 0 {
		if err := h.exploreDeeperThan(ctx, n.Depth-1); err != nil {
			return err
		}
	}
	for _, id := range n.Parents {
		parent := h.pending[id]
		if parent == nil {
			continue // it can be reached from without
		}
		if parent.Depth+h.maxDepthGap < n.Depth {
			parent.children--
			h.tips = append(h.tips, parent)
			slices.SortFunc(h.tips, func(a, b *node) int { return b.compareDeepestFirst(a) })
			continue
		}
		if err := h.exploreDeeperThan(ctx, parent.Depth); err != nil {
			return err
		}
		if parent.children--; parent.children == 0 && parent.sides&stale == 0 {
			h.ready = append(h.ready, parent)
		}
	}
	delete(h.pending, n.ID)
	return nil
}

// defaultMaxDepthGap is the largest difference of depth between a merge and a parent whose line is
// yielded at once.
const defaultMaxDepthGap = 256

// exploreDeeperThan finds all commits deeper than a depth, and so all children of the commits at that depth.
func (h *historyWalk) exploreDeeperThan(ctx context.Context, depth uint64) error {
	for h.heap.Len() > 0 && h.heap.nodes[0].Depth > depth {
		c, p := h.pop()
		if err := h.reachParents(ctx, c, p); err != nil {
			return err
		}
		if p&stale != 0 {
			delete(h.pending, c.ID)
			continue
		}
		for _, id := range c.Parents {
			h.pending[id].children++
		}
	}
	return nil
}

// MergeBases returns the best common ancestors of two commits, by both parents: none when there is
// no common ancestor, several after criss-cross merges.
func MergeBases(ctx context.Context, r objects.Reader, a, b objects.ID) ([]objects.ID, error) {
	f := newFrontier(r)
	err := f.reachAll(ctx, []objects.ID{a, b}, func(i int) sides { return fromA << i })
	var bases []objects.ID
	for err == nil && f.active > 0 {
		c, p := f.pop()
		if p == fromA|fromB {
			bases = append(bases, c.ID)
			p |= stale
		}
		err = f.reachParents(ctx, c, p)
	}
	if err != nil {
		return nil, err
	}
	return bases, nil
}

// MergeBase returns the deepest of MergeBases; zero: there is none.
func MergeBase(ctx context.Context, r objects.Reader, a, b objects.ID) (objects.ID, error) {
	bases, err := MergeBases(ctx, r, a, b)
	if err != nil || len(bases) == 0 {
		return objects.ID{}, err
	}
	return bases[0], nil
}

// sides is the set of sides from which a commit was reached.
type sides uint8

const (
	fromA sides = 1 << iota
	fromB       // of the two whose base is looked for
	stale       // its ancestors need no walk: they are excluded, or ancestors of a merge base
)

// frontier holds the commits that a walk has reached and not passed. A parent is less deep than its
// child, so that the deepest commit of the frontier has been reached from all its children.
type frontier struct {
	r          objects.Reader
	heap       nodeHeap
	onFrontier map[objects.ID]*node   // what is in the heap
	pending    map[objects.ID]*node   // reached and not yielded; nil: the walk yields nothing
	readAhead  map[objects.ID]*Commit // read and not reached
	pageSize   int                    // commits of a line that are read at once
	active     int                    // commits in the heap that are not stale
}

type node struct {
	*Commit
	sides    sides
	children int // found and not yielded
}

func newFrontier(r objects.Reader) *frontier {
	return &frontier{r: r, onFrontier: map[objects.ID]*node{}, readAhead: map[objects.ID]*Commit{}, pageSize: minPage, heap: nodeHeap{before: (*node).compareDeepestFirst}}
}

// reachAll puts the tips on the frontier. sidesOf returns the sides of tip i.
func (f *frontier) reachAll(ctx context.Context, tips []objects.ID, sidesOf func(i int) sides) error {
	if len(tips) > 2 {
		known, err := objects.ReadAll(ctx, f.r, tips, Parse)
		if err != nil {
			return err
		}
		f.readAhead = known
	}
	for i, id := range tips {
		if id.IsZero() {
			continue
		}
		if err := f.reach(ctx, id, sidesOf(i)); err != nil {
			return err
		}
	}
	return nil
}

// reach puts a commit on the frontier, or adds sides to one that is there.
func (f *frontier) reach(ctx context.Context, id objects.ID, p sides) error {
	if n := f.onFrontier[id]; n != nil {
		if n.sides&stale == 0 && p&stale != 0 {
			f.active--
		}
		n.sides |= p
		return nil
	}
	c := f.readAhead[id]
	if c == nil {
		if err := f.readAheadFrom(ctx, id); err != nil {
			return err
		}
		c = f.readAhead[id]
	}
	delete(f.readAhead, id)
	n := &node{Commit: c, sides: p}
	if f.onFrontier[id] = n; f.pending != nil {
		f.pending[id] = n
	}
	heap.Push(&f.heap, n)
	if p&stale == 0 {
		f.active++
	}
	return nil
}

// The first and the largest number of commits that are read ahead of the walk. Another read of the
// store costs more than a page of headers.
const (
	minPage = 32
	maxPage = 256
)

// readAheadFrom reads a commit and its first parents, up to one that was read. An error of a parent is not
// returned: the walk meets it when it gets there, after the intact commits before it.
func (f *frontier) readAheadFrom(ctx context.Context, id objects.ID) error {
	for c, err := range Walk(ctx, f.r, id, f.pageSize) {
		if err != nil {
			if f.readAhead[id] == nil {
				return err
			}
			break
		}
		if f.readAhead[c.ID] != nil || f.onFrontier[c.ID] != nil {
			break
		}
		f.readAhead[c.ID] = c
	}
	f.pageSize = min(2*f.pageSize, maxPage)
	if f.readAhead[id] == nil {
		return &objects.NotFoundError{ID: id}
	}
	return nil
}

// pop removes the deepest commit of the frontier.
func (f *frontier) pop() (*Commit, sides) {
	n := heap.Pop(&f.heap).(*node)
	delete(f.onFrontier, n.ID)
	if n.sides&stale == 0 {
		f.active--
	}
	return n.Commit, n.sides
}

// reachParents puts the parents of a commit on the frontier.
func (f *frontier) reachParents(ctx context.Context, c *Commit, p sides) error {
	for _, id := range c.Parents {
		if err := f.reach(ctx, id, p); err != nil {
			return err
		}
	}
	return nil
}

// nodeHeap is a container/heap of which the first by before is on top.
type nodeHeap struct {
	nodes  []*node
	before func(n, m *node) int // negative: n is on top of m
}

func (e *nodeHeap) Len() int           { return len(e.nodes) }
func (e *nodeHeap) Swap(i, j int)      { e.nodes[i], e.nodes[j] = e.nodes[j], e.nodes[i] }
func (e *nodeHeap) Push(x any)         { e.nodes = append(e.nodes, x.(*node)) }
func (e *nodeHeap) Less(i, j int) bool { return e.before(e.nodes[i], e.nodes[j]) < 0 }

func (e *nodeHeap) Pop() any {
	last := len(e.nodes) - 1
	n := e.nodes[last]
	e.nodes = e.nodes[:last]
	return n
}

// compareDeepestFirst compares commits for a sort: the deepest first, then the latest.
func (n *node) compareDeepestFirst(m *node) int {
	return cmp.Or(cmp.Compare(m.Depth, n.Depth), m.Time.Compare(n.Time), m.ID.Compare(n.ID))
}

// compareNewestFirst compares commits for a sort: the latest first, then the deepest.
func (n *node) compareNewestFirst(m *node) int {
	return cmp.Or(m.Time.Compare(n.Time), cmp.Compare(m.Depth, n.Depth), m.ID.Compare(n.ID))
}
