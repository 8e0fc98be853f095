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

// FsckOptions is how [Fsck] checks a store.
type FsckOptions struct {
	Files    safefile.Policy // whose files are accepted
	Progress func(done, total int64)
}

// FsckResult is what [Fsck] found.
type FsckResult struct {
	Objects     int // whose content matches their id
	Commits     int
	Refs        int
	Entries     int // of the ref log
	Erased      int // objects that were purged, of which a tombstone is left
	Unreachable int // objects to which no ref leads and none ever did: [GC] removes them
	Damages     []Damage
}

// Damage is one thing that is wrong, and the refs that it concerns.
type Damage struct {
	objects.Damage
	Refs []string // that lead to it, some of them when there are many
}

// OK reports whether no damage was found, or only harmless damage.
func (h *FsckResult) OK() bool {
	return !slices.ContainsFunc(h.Damages, func(d Damage) bool { return !d.Harmless })
}

// Fsck checks the whole store at url, damaged or not: every page of its files, every
// object against its id, every link, the depth of every commit, the refs and the chain
// of their log. It changes nothing, and other processes may use the store meanwhile. The
// error is for a store that cannot be read at all; damage is in the FsckResult.
func Fsck(ctx context.Context, url string, o FsckOptions) (*FsckResult, error) {
	store, err := objects.Open(ctx, url, objects.Options{Damaged: true, Files: o.Files})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	result, err := newLinkCheck(tableRows).run(ctx, store, o)
	if errors.Is(err, errUnclear) {
		result, err = (&checker{}).run(ctx, store, o)
	}
	if err != nil {
		return nil, fmt.Errorf("fsck: %w", err)
	}
	return result, nil
}

// checker finds out what is wrong in a store, and what that means.
type checker struct {
	health FsckResult
	graph  *graph
	refs   []objects.Ref
	roots  []int32               // nodes that refs lead to, or ever led to
	past   map[objects.ID]string // former targets of refs, and the ref
}

func (c *checker) run(ctx context.Context, store objects.Store, o FsckOptions) (*FsckResult, error) {
	a := c.audit()
	a.Progress = o.Progress
	err := audit(ctx, store, a)
	if err == nil {
		err = c.finish()
	}
	return &c.health, err
}

func (c *checker) audit() objects.Audit {
	return objects.Audit{
		Begin: func(about int) error {
			*c = checker{past: map[objects.ID]string{}}
			c.graph = newGraph(about, c.reportInvalid)
			return nil
		},
		Objects: func(list []objects.Object) error {
			return c.graph.add(list, func(o *objects.Object) error {
				if c.health.Objects++; o.Kind == objects.KindCommit {
					c.health.Commits++
				}
				return nil
			})
		},
		Tombstone: func(t objects.Tombstone) error {
			if c.graph.addTombstone(t) {
				c.health.Erased++
			}
			return nil
		},
		Ref: func(r objects.Ref) error {
			c.health.Refs++
			c.refs = append(c.refs, r)
			return nil
		},
		Entry: func(e objects.LogEntry) error {
			c.health.Entries++
			for _, u := range e.Refs {
				if !u.New.IsZero() {
					c.roots = append(c.roots, c.graph.number(u.New))
					c.past[u.New] = u.Name
				}
			}
			return nil
		},
		Damage: func(d objects.Damage) error {
			c.health.Damages = append(c.health.Damages, Damage{Damage: d})
			return nil
		},
	}
}

// reportInvalid adds an object that matches its id and is not valid: it was written so.
func (c *checker) reportInvalid(id objects.ID, what error) error {
	c.health.Damages = append(c.health.Damages, Damage{Damage: objects.Damage{
		ID: id, Where: "object " + id.Short(), What: what.Error(),
		Means: "a faulty or malicious program wrote it; do not trust what it links to",
	}})
	return nil
}

// finish finds what is missing, and what each damage means.
func (c *checker) finish() error {
	if err := c.graph.checkCommits(); err != nil {
		return err
	}
	for _, r := range c.refs {
		c.roots = append(c.roots, c.graph.number(r.Target))
	}
	reached := c.graph.reachFrom(c.roots)
	reported := map[objects.ID]bool{}
	for _, d := range c.health.Damages {
		reported[d.ID] = true
	}
	for n := range c.graph.nodes {
		at := &c.graph.nodes[n]
		if at.kind != 0 {
			if !reached[n] && !at.erased {
				c.health.Unreachable++
			}
			continue
		}
		if id := c.graph.ids[n]; !reported[id] {
			c.health.Damages = append(c.health.Damages, Damage{Damage: objects.Damage{
				ID: id, Where: "object " + id.Short(), What: "missing", Harmless: !reached[n],
			}})
		}
	}
	c.explain()
	return nil
}

// mostRefs is how many refs are named for one damage.
const mostRefs = 5

// explain says of each lost object what it was and which refs lead to it.
func (c *checker) explain() {
	if !slices.ContainsFunc(c.health.Damages, func(d Damage) bool { return !d.ID.IsZero() }) {
		return
	}
	back := c.graph.back()
	names := map[int32][]string{}
	for _, r := range c.refs {
		n := c.graph.number(r.Target)
		names[n] = append(names[n], r.Name)
	}
	seen := make([]int32, len(c.graph.nodes)) // the number of the last damage whose search came there
	for i := range c.health.Damages {
		d := &c.health.Damages[i]
		n, ok := c.graph.find(d.ID)
		if d.ID.IsZero() || !ok {
			if !d.ID.IsZero() && d.Means == "" {
				d.Means, d.Harmless = "no ref leads to it", false
			}
			continue
		}
		d.Refs = c.refsTo(n, back, names, seen, int32(i+1))
		if d.Means == "" {
			d.Means = c.meaning(n, back, d.Refs)
		}
	}
}

// refsTo finds refs from which a node can be reached.
func (c *checker) refsTo(n int32, back [][]int32, names map[int32][]string, seen []int32, mark int32) (found []string) {
	todo := []int32{n}
	for seen[n] = mark; len(todo) > 0 && len(found) < mostRefs; {
		at := todo[0]
		todo = todo[1:]
		found = append(found, names[at]...)
		for _, from := range back[at] {
			if seen[from] != mark {
				seen[from] = mark
				todo = append(todo, from)
			}
		}
	}
	slices.Sort(found)
	return found[:min(len(found), mostRefs)]
}

// meaning says what the loss of an object is, by what leads to it.
func (c *checker) meaning(n int32, back [][]int32, names []string) string {
	of := ""
	if len(names) > 0 {
		var short []string
		for _, name := range names {
			short = append(short, strings.TrimPrefix(name, refs.Heads))
		}
		of = " of " + strings.Join(short, ", ")
	}
	if len(back[n]) == 0 && len(names) == 0 {
		if name, ok := c.past[c.graph.ids[n]]; ok {
			return "a former tip of " + strings.TrimPrefix(name, refs.Heads) + " is lost"
		}
		return "no ref leads to it"
	}
	if len(back[n]) == 0 {
		return "the tip" + of + " is lost: find earlier commits in the ref log (tract reflog)"
	}
	from := back[n][0]
	at := c.graph.nodes[from]
	for i, to := range c.graph.out(from) {
		if to == n && i < int(at.parents) && at.kind == objects.KindCommit {
			return "the history" + of + " before commit " + c.graph.ids[from].Short() + " is unreachable"
		}
	}
	switch {
	case at.kind != objects.KindCommit:
		return fmt.Sprintf("a part of %s %s%s is lost", at.kind, c.graph.ids[from].Short(), of)
	case at.says && c.graph.content(from) == n:
		return "the content of commit " + c.graph.ids[from].Short() + of + " is lost; the history before and after it is intact"
	}
	return "the origin or the label of commit " + c.graph.ids[from].Short() + of + " is lost; its content is intact"
}

// audit lets the engine check itself, or checks what any engine returns.
func audit(ctx context.Context, store objects.Store, a objects.Audit) error {
	if in, ok := objects.As[objects.Maintainer](store); ok {
		return in.Audit(ctx, a)
	}
	return objects.AuditStore(ctx, store, a)
}
