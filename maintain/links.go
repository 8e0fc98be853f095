package maintain

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// errUnclear ends a linkCheck that found something that only a [checker] can explain.
var errUnclear = errors.New("something is wrong or unreachable")

// linkCheck checks the objects, links and refs of a store without a graph. It keeps what is
// known of each object in an [objectTable], and only of merges anything else: its memory hardly
// grows with the store. It cannot name an object.
type linkCheck struct {
	result  FsckResult
	seed    maphash.Seed
	table   *objectTable
	merges  []merge
	parents []mergeParent // of all merges
	err     error         // errUnclear, once something was found
}

// merge is a commit with several parents.
type merge struct {
	depth uint32 // according to the commit
	want  uint32 // according to the parents that were found
}

// mergeParent is a parent of a merge.
type mergeParent struct {
	key   uint64
	merge int
}

// newLinkCheck makes one that keeps so many rows of each partition of its table in memory.
func newLinkCheck(rows int) *linkCheck {
	return &linkCheck{seed: maphash.MakeSeed(), table: &objectTable{rows: rows}}
}

// run returns what it found, or errUnclear.
func (c *linkCheck) run(ctx context.Context, store objects.Store, o FsckOptions) (*FsckResult, error) {
	defer func() { c.table.close() }()
	a := c.audit()
	a.Progress = o.Progress
	if err := runAudit(ctx, store, a); err != nil {
		return nil, err
	}
	return &c.result, c.finish()
}

func (c *linkCheck) audit() objects.Audit {
	return objects.Audit{
		Begin: func(int) error {
			c.table.close()
			*c = *newLinkCheck(c.table.rows)
			return nil
		},
		Objects: func(list []objects.Object) error {
			for i := range list {
				c.add(&list[i])
			}
			return c.err
		},
		Tombstone: func(t objects.Tombstone) error {
			c.put(t.ID, objectInfo{flags: purged, kind: kindOf(t.Kind), value: clamp(t.Size)})
			return c.err
		},
		Ref: func(r objects.Ref) error {
			c.result.Refs++
			c.link(r.Target)
			return c.err
		},
		Entry: func(e objects.LogEntry) error {
			c.result.Entries++
			for _, u := range e.Refs {
				if !u.New.IsZero() {
					c.link(u.New)
				}
			}
			return c.err
		},
		Damage: func(d objects.Damage) error {
			if !d.ID.IsZero() {
				return errUnclear
			}
			c.result.Damages = append(c.result.Damages, Damage{Damage: d})
			return nil
		},
	}
}

// add adds an object, and what it says of those that it links to.
func (c *linkCheck) add(o *objects.Object) {
	n, err := parse(o)
	if err != nil {
		c.err = errUnclear
		return
	}
	info := objectInfo{flags: present, kind: kindOf(o.Kind), value: n.size}
	if n.parsed {
		info.value = n.depth
	}
	c.put(o.ID, info)
	c.link(o.Parents...)
	c.link(o.Links...)
	if n.says {
		c.put(o.Links[0], objectInfo{kind: objects.KindContent, value: n.size})
	}
	switch {
	case !n.parsed || len(o.Parents) == 0:
	case len(o.Parents) == 1:
		c.put(o.Parents[0], objectInfo{kind: objects.KindCommit, value: n.depth - 1})
	default:
		for _, id := range o.Parents {
			c.parents = append(c.parents, mergeParent{hashOf(c.seed, id), len(c.merges)})
		}
		c.merges = append(c.merges, merge{depth: n.depth})
	}
}

// link adds that something links to objects.
func (c *linkCheck) link(ids ...objects.ID) {
	for _, id := range ids {
		c.put(id, objectInfo{flags: linked})
	}
}

// put adds what is known of an object. If the table cannot be written, a graph is made.
func (c *linkCheck) put(id objects.ID, info objectInfo) {
	info.key = hashOf(c.seed, id)
	if c.table.add(info) != nil {
		c.err = errUnclear
	}
}

// finish counts the objects, and checks that each is there, is what links to it expect, and can
// be reached. In a graph without cycles some unreachable object has nothing that links to it.
func (c *linkCheck) finish() error {
	slices.SortFunc(c.parents, func(a, b mergeParent) int { return cmp.Compare(a.key, b.key) })
	parents := c.parents
	err := c.table.each(func(info objectInfo) error {
		is := func(flag objectFlags) bool { return info.flags&flag != 0 }
		if is(conflict) || !is(present|purged) || is(present) && !is(linked) {
			return errUnclear
		}
		if !is(present) {
			c.result.Erased++
		} else if c.result.Objects++; info.kind == objects.KindCommit {
			c.result.Commits++
		}
		for ; len(parents) > 0 && parents[0].key == info.key; parents = parents[1:] {
			if info.kind != objects.KindCommit || !is(present) {
				return errUnclear
			}
			m := &c.merges[parents[0].merge]
			m.want = max(m.want, info.value+1)
		}
		return nil
	})
	if err != nil || slices.ContainsFunc(c.merges, func(m merge) bool { return m.depth != m.want }) {
		return errUnclear
	}
	return nil
}

// objectInfo is what is known of an object, by itself and by what links to it.
type objectInfo struct {
	key   uint64
	value uint32       // the depth of a commit, the size of content
	kind  objects.Kind // as of kindOf; 0: it is not known
	flags objectFlags
}

// kindOf is the kind of an object, where a list counts as content.
func kindOf(k objects.Kind) objects.Kind {
	if k == objects.KindList {
		return objects.KindContent
	}
	return k
}

// objectFlags are bits.
type objectFlags uint8

const (
	present  objectFlags = 1 << iota
	purged               // there is a tombstone
	linked               // an object, a ref or a log entry links to it
	conflict             // it is not what something expects that links to it
)

// join adds what is known of the same object from elsewhere.
func (i *objectInfo) join(other objectInfo) {
	i.flags |= other.flags
	switch {
	case i.kind == 0:
		i.kind, i.value = other.kind, other.value
	case other.kind != 0 && (other.kind != i.kind || other.value != i.value):
		i.flags |= conflict
	}
}
