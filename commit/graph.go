package commit

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// History yields the commits that tips have and without has not, each once and
// before its parents, line by line: after a merge first what the second parent
// brings, newest first, as in the order of [Linearize] backwards. Both parents count. It
// reads little more than it yields; an error is the last element.
func History(ctx context.Context, r objects.Reader, tips, without []objects.ID) iter.Seq2[*Commit, error] {
	return history(ctx, r, tips, without, farBack)
}

func history(ctx context.Context, r objects.Reader, tips, without []objects.ID, far uint64) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		h := &lines{frontier: newFrontier(r), far: far}
		err := h.start(ctx, tips, without)
		for err == nil {
			var n *reached
			if n, err = h.next(ctx); n == nil {
				break
			}
			if !yield(n.Commit, nil) {
				return
			}
			err = h.shown(ctx, n)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// lines is a walk that goes on with a line as long as it can. A commit is shown
// when all its children have been.
type lines struct {
	*frontier
	far   uint64
	tips  []*reached // the deepest last
	ready []*reached // the one to show next last
}

func (h *lines) start(ctx context.Context, tips, without []objects.ID) error {
	h.all = map[objects.ID]*reached{}
	err := h.begin(ctx, append(tips[:len(tips):len(tips)], without...), func(i int) paint {
		if i < len(tips) {
			return left
		}
		return settled
	})
	for _, id := range tips {
		if n := h.all[id]; n != nil && !slices.Contains(h.tips, n) {
			h.tips = append(h.tips, n)
		}
	}
	slices.SortFunc(h.tips, func(a, b *reached) int { return b.before(a) })
	return err
}

// next is the commit to show next; nil when there is none.
func (h *lines) next(ctx context.Context) (*reached, error) {
	for len(h.ready) == 0 && len(h.tips) > 0 {
		tip := h.tips[len(h.tips)-1]
		h.tips = h.tips[:len(h.tips)-1]
		if err := h.explore(ctx, tip.Depth); err != nil {
			return nil, err
		}
		if h.all[tip.ID] == tip && tip.paint&settled == 0 && tip.children == 0 {
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

// shown makes the parents ready whose last child it was. A second parent that lies
// far back waits until the line at hand is done: all that is deeper would have to be
// read first.
func (h *lines) shown(ctx context.Context, n *reached) error {
	if len(n.Parents) > 0 {
		if err := h.explore(ctx, n.Depth-1); err != nil {
			return err
		}
	}
	for _, id := range n.Parents {
		parent := h.all[id]
		if parent == nil {
			continue // nobody wants it
		}
		if parent.Depth+h.far < n.Depth {
			parent.children--
			h.tips = append(h.tips, parent)
			slices.SortFunc(h.tips, func(a, b *reached) int { return b.before(a) })
			continue
		}
		if err := h.explore(ctx, parent.Depth); err != nil {
			return err
		}
		if parent.children--; parent.children == 0 && parent.paint&settled == 0 {
			h.ready = append(h.ready, parent)
		}
	}
	delete(h.all, n.ID)
	return nil
}

// farBack is how much deeper than its parent a merge may be for that parent's line
// to be shown at once.
const farBack = 256

// explore finds all commits deeper than a depth, and with them all children of
// those that are at it.
func (h *lines) explore(ctx context.Context, depth uint64) error {
	for len(h.edge) > 0 && h.edge[0].Depth > depth {
		c, p := h.pop()
		if err := h.parents(ctx, c, p); err != nil {
			return err
		}
		if p&settled != 0 {
			delete(h.all, c.ID)
			continue
		}
		for _, id := range c.Parents {
			h.all[id].children++
		}
	}
	return nil
}

// MergeBases finds the last commits that two histories share, by both parents:
// none when they share none, several when they were merged crosswise.
func MergeBases(ctx context.Context, r objects.Reader, a, b objects.ID) ([]objects.ID, error) {
	f := newFrontier(r)
	err := f.begin(ctx, []objects.ID{a, b}, func(i int) paint { return left << i })
	var bases []objects.ID
	for err == nil && f.open > 0 {
		c, p := f.pop()
		if p == left|right {
			bases = append(bases, c.ID)
			p |= settled
		}
		err = f.parents(ctx, c, p)
	}
	if err != nil {
		return nil, err
	}
	return bases, nil
}

// MergeBase is the deepest of MergeBases; zero when there is none.
func MergeBase(ctx context.Context, r objects.Reader, a, b objects.ID) (objects.ID, error) {
	bases, err := MergeBases(ctx, r, a, b)
	if err != nil || len(bases) == 0 {
		return objects.ID{}, err
	}
	return bases[0], nil
}

// paint is from where a commit was reached.
type paint uint8

const (
	left    paint = 1 << iota
	right         // of the two whose base is looked for
	settled       // nothing more is to be learned below
)

// frontier is the edge of a walk over whole histories. A parent is never as deep as
// its child, so the deepest commit of the edge has been reached by all its children.
type frontier struct {
	r     objects.Reader
	edge  edge
	at    map[objects.ID]*reached // what is on the edge
	all   map[objects.ID]*reached // what was reached and is still to be shown; nil when nothing is
	ahead map[objects.ID]*Commit  // what was read and not reached yet
	page  int                     // how many commits of a line are read at once
	open  int                     // how many on the edge are not settled
}

type reached struct {
	*Commit
	paint    paint
	children int // that were found and are not shown yet
}

func newFrontier(r objects.Reader) *frontier {
	return &frontier{r: r, at: map[objects.ID]*reached{}, ahead: map[objects.ID]*Commit{}, page: leastPage}
}

// begin puts the tips on the edge.
func (f *frontier) begin(ctx context.Context, tips []objects.ID, of func(i int) paint) error {
	if len(tips) > 2 {
		for obj, err := range f.r.Get(ctx, tips) {
			if err != nil {
				return err
			}
			c, err := Parse(obj)
			if err != nil {
				return err
			}
			f.ahead[c.ID] = c
		}
	}
	for i, id := range tips {
		if id.IsZero() {
			continue
		}
		if err := f.reach(ctx, id, of(i)); err != nil {
			return err
		}
	}
	return nil
}

// reach puts a commit on the edge, or adds paint to one that is there.
func (f *frontier) reach(ctx context.Context, id objects.ID, p paint) error {
	if n := f.at[id]; n != nil {
		if n.paint&settled == 0 && p&settled != 0 {
			f.open--
		}
		n.paint |= p
		return nil
	}
	c := f.ahead[id]
	if c == nil {
		if err := f.read(ctx, id); err != nil {
			return err
		}
		c = f.ahead[id]
	}
	delete(f.ahead, id)
	n := &reached{Commit: c, paint: p}
	if f.at[id] = n; f.all != nil {
		f.all[id] = n
	}
	heap.Push(&f.edge, n)
	if p&settled == 0 {
		f.open++
	}
	return nil
}

// A line is read ahead of by so many commits at first, and at most. To look at the
// store once more costs more than the headers of a page.
const (
	leastPage = 32
	maxPage   = 256
)

// read reads a commit, and those before it while nobody else has.
func (f *frontier) read(ctx context.Context, id objects.ID) error {
	for c, err := range Walk(ctx, f.r, id, f.page) {
		if err != nil {
			return err
		}
		if f.ahead[c.ID] != nil || f.at[c.ID] != nil {
			break
		}
		f.ahead[c.ID] = c
	}
	f.page = min(2*f.page, maxPage)
	if f.ahead[id] == nil {
		return &objects.NotFoundError{ID: id}
	}
	return nil
}

// pop takes the deepest commit off the edge.
func (f *frontier) pop() (*Commit, paint) {
	n := heap.Pop(&f.edge).(*reached)
	delete(f.at, n.ID)
	if n.paint&settled == 0 {
		f.open--
	}
	return n.Commit, n.paint
}

// parents puts the parents of a commit on the edge.
func (f *frontier) parents(ctx context.Context, c *Commit, p paint) error {
	for _, id := range c.Parents {
		if err := f.reach(ctx, id, p); err != nil {
			return err
		}
	}
	return nil
}

// edge is a heap of commits, the deepest on top; of several the latest.
type edge []*reached

func (e edge) Len() int      { return len(e) }
func (e edge) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *edge) Push(x any)   { *e = append(*e, x.(*reached)) }

func (e edge) Less(i, j int) bool { return e[i].before(e[j]) < 0 }

// before orders commits: the deepest first, of several the latest.
func (n *reached) before(m *reached) int {
	return cmp.Or(cmp.Compare(m.Depth, n.Depth), m.Time.Compare(n.Time), m.ID.Compare(n.ID))
}

func (e *edge) Pop() any {
	last := len(*e) - 1
	n := (*e)[last]
	*e = (*e)[:last]
	return n
}
