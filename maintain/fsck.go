package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// FsckOptions are the options of [Fsck].
type FsckOptions struct {
	Files    safefile.Policy // the owners and permissions of files that are accepted
	Progress func(done, total int64)
}

// FsckResult is the result of [Fsck].
type FsckResult struct {
	Objects     int // objects whose data match their id
	Commits     int
	Refs        int
	Entries     int // entries of the ref log
	Purged      int // purged objects, of which the store keeps a tombstone
	Unreachable int // objects that no ref leads to or ever led to: [GC] removes them
	Damages     []Damage
}

// Damage is one damage of a store, and the refs that it affects.
type Damage struct {
	objects.Damage
	Refs []string // the refs that lead to the damaged object, at most mostRefs of them
}

// OK reports whether no damage was found, or only harmless damage.
func (h *FsckResult) OK() bool {
	return !slices.ContainsFunc(h.Damages, func(d Damage) bool { return !d.Harmless })
}

// Fsck checks the whole store at url, damaged or not: every page of its files, every
// object against its id, every link, the depth of every commit, the refs and the chain
// of their log. It changes nothing, and other processes may use the store meanwhile. It returns
// an error only for a store that cannot be read at all; damage is in the FsckResult.
func Fsck(ctx context.Context, url string, o FsckOptions) (*FsckResult, error) {
	store, err := objects.Open(ctx, url, objects.Options{Damaged: true, Files: o.Files})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	result, err := newLinkCheck(tableRows).resultOrErrNeedsGraph(ctx, store, o)
	if errors.Is(err, errNeedsGraph) {
		result, err = (&checker{}).run(ctx, store, o)
	}
	if err != nil {
		return nil, fmt.Errorf("fsck: %w", err)
	}
	return result, nil
}

// checker is the state of one Fsck that explains damage. It collects the objects and their links
// in a graph, which keeps all ids, and then finds the refs and the meaning of each damage.
type checker struct {
	result FsckResult
	graph  *graph
	refs   []objects.Ref
	roots  []int32               // nodes that refs point to, or ever pointed to
	past   map[objects.ID]string // former targets of refs, with the name of the ref
}

// run checks the store.
func (c *checker) run(ctx context.Context, store objects.Store, o FsckOptions) (*FsckResult, error) {
	a := c.auditCallbacks()
	a.Progress = o.Progress
	err := auditAnyStore(ctx, store, a)
	if err == nil {
		err = c.finish()
	}
	return &c.result, err
}

// auditCallbacks returns the callbacks that collect the content of the store.
func (c *checker) auditCallbacks() objects.Audit {
	return objects.Audit{
		Begin: func(about int) error {
			*c = checker{past: map[objects.ID]string{}}
			c.graph = newGraph(about, c.reportInvalid)
			return nil
		},
		Objects: func(list []objects.Object) error {
			return c.graph.add(list, func(o *objects.Object) error {
				if c.result.Objects++; o.Kind == objects.KindCommit {
					c.result.Commits++
				}
				return nil
			})
		},
		Tombstone: func(t objects.Tombstone) error {
			if c.graph.addTombstone(t) {
				c.result.Purged++
			}
			return nil
		},
		Ref: func(r objects.Ref) error {
			c.result.Refs++
			c.refs = append(c.refs, r)
			return nil
		},
		Entry: func(e objects.LogEntry) error {
			c.result.Entries++
			for _, u := range e.Refs {
				if !u.New.IsZero() {
					c.roots = append(c.roots, c.graph.findOrAdd(u.New))
					c.past[u.New] = u.Name
				}
			}
			return nil
		},
		Damage: func(d objects.Damage) error {
			c.result.Damages = append(c.result.Damages, Damage{Damage: d})
			return nil
		},
	}
}

// reportInvalid adds a damage for an object that matches its id but is not valid: it was written
// like that.
func (c *checker) reportInvalid(id objects.ID, what error) error {
	c.result.Damages = append(c.result.Damages, Damage{Damage: objects.Damage{
		ID: id, Where: "object " + id.Short(), What: what.Error(),
		Means: "a faulty or malicious program wrote it; do not trust what it links to",
	}})
	return nil
}

// finish checks the graph: it finds missing and unreachable objects, and explains each damage.
func (c *checker) finish() error {
	if err := c.graph.checkCommits(); err != nil {
		return err
	}
	for _, r := range c.refs {
		c.roots = append(c.roots, c.graph.findOrAdd(r.Target))
	}
	reached := c.graph.reachableFrom(c.roots)
	reported := map[objects.ID]bool{}
	for _, d := range c.result.Damages {
		reported[d.ID] = true
	}
	for n := range c.graph.nodes {
		at := &c.graph.nodes[n]
		if at.kind != 0 {
			if !reached[n] && !at.purged {
				c.result.Unreachable++
			}
			continue
		}
		if id := c.graph.ids[n]; !reported[id] {
			c.result.Damages = append(c.result.Damages, Damage{Damage: objects.Damage{
				ID: id, Where: "object " + id.Short(), What: "missing", Harmless: !reached[n],
			}})
		}
	}
	c.explainDamages()
	return nil
}

// mostRefs is the largest number of refs that are named for one damage.
const mostRefs = 5

// explainDamages sets the meaning and the refs of each damage of an object.
func (c *checker) explainDamages() {
	if !slices.ContainsFunc(c.result.Damages, func(d Damage) bool { return !d.ID.IsZero() }) {
		return
	}
	referrers := c.graph.referrers()
	names := map[int32][]string{}
	for _, r := range c.refs {
		n := c.graph.findOrAdd(r.Target)
		names[n] = append(names[n], r.Name)
	}
	visited := make([]int32, len(c.graph.nodes)) // for each node: the number of the last search that visited it
	for i := range c.result.Damages {
		d := &c.result.Damages[i]
		n, ok := c.graph.find(d.ID)
		if d.ID.IsZero() || !ok {
			if !d.ID.IsZero() && d.Means == "" {
				d.Means, d.Harmless = "no ref leads to it", false
			}
			continue
		}
		d.Refs = c.refsReaching(n, referrers, names, visited, int32(i+1))
		if d.Means == "" {
			d.Means = c.describeLoss(n, referrers, d.Refs)
		}
	}
}

// refsReaching finds refs from which node n can be reached. referrers has the nodes that link to
// each node, refNames the refs at each node. visited holds the number of the last search that
// visited a node; search is the number of this search.
func (c *checker) refsReaching(n int32, referrers [][]int32, refNames map[int32][]string, visited []int32, search int32) (found []string) {
	todo := []int32{n}
	for visited[n] = search; len(todo) > 0 && len(found) < mostRefs; {
		at := todo[0]
		todo = todo[1:]
		found = append(found, refNames[at]...)
		for _, from := range referrers[at] {
			if visited[from] != search {
				visited[from] = search
				todo = append(todo, from)
			}
		}
	}
	slices.Sort(found)
	return found[:min(len(found), mostRefs)]
}

// describeLoss describes the consequence of the loss of an object, according to the nodes in
// referrers and the refs that lead to it.
func (c *checker) describeLoss(n int32, referrers [][]int32, refNames []string) string {
	of := ""
	if len(refNames) > 0 {
		var short []string
		for _, name := range refNames {
			short = append(short, strings.TrimPrefix(name, refs.Heads))
		}
		of = " of " + strings.Join(short, ", ")
	}
	if len(referrers[n]) == 0 && len(refNames) == 0 {
		if name, ok := c.past[c.graph.ids[n]]; ok {
			return "a former tip of " + strings.TrimPrefix(name, refs.Heads) + " is lost"
		}
		return "no ref leads to it"
	}
	if len(referrers[n]) == 0 {
		return "the tip" + of + " is lost: find earlier commits in the ref log (tract reflog)"
	}
	from := referrers[n][0]
	at := c.graph.nodes[from]
	for i, to := range c.graph.linksFrom(from) {
		if to == n && i < int(at.parents) && at.kind == objects.KindCommit {
			return "the history" + of + " before commit " + c.graph.ids[from].Short() + " is unreachable"
		}
	}
	switch contentNode, ok := c.graph.contentNode(from); {
	case at.kind != objects.KindCommit:
		return fmt.Sprintf("a part of %s %s%s is lost", at.kind, c.graph.ids[from].Short(), of)
	case ok && contentNode == n:
		return "the content of commit " + c.graph.ids[from].Short() + of + " is lost; the history before and after it is intact"
	}
	return "the origin or the label of commit " + c.graph.ids[from].Short() + of + " is lost; its content is intact"
}

// auditAnyStore runs the engine's own audit, or one of the objects and refs that the engine returns.
func auditAnyStore(ctx context.Context, store objects.Store, a objects.Audit) error {
	if in, ok := objects.As[objects.Maintainer](store); ok {
		return in.Audit(ctx, a)
	}
	return objects.AuditStore(ctx, store, a)
}
