package maintain

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// Fsck reads every object once. The first pass is a linkCheck: it answers only whether everything is
// intact and reachable, and its memory hardly grows with the store. It adds a row to an
// [objectTable] for each object that it reads, and one for each reference to an object. A row has a
// 64-bit hash of the id as its key, the kind, and the depth or size that the object has or is
// expected to have, and flags. At the end, the rows of each key are joined. A reference without an
// object or tombstone, an object that nothing refers to, or two rows that differ in kind, depth or
// size show that something is wrong. Only the parents of merges are checked outside the table, since
// a merge is one deeper than the deepest of several commits. Since the table has hashes instead of
// ids, a linkCheck cannot name the object that is wrong: it returns errNeedsGraph, and Fsck reads the
// store again with a [checker].

// errNeedsGraph ends a linkCheck that found damage, a missing object or an unreachable one, which
// only a [checker] can name.
var errNeedsGraph = errors.New("something is wrong or unreachable")

// linkCheck checks the objects, links and refs of a store without a graph.
type linkCheck struct {
	result  FsckResult
	seed    maphash.Seed
	table   *objectTable
	merges  []merge
	parents []mergeParent // of all merges
	err     error         // errNeedsGraph, once something was found
}

// merge is a commit with several parents.
type merge struct {
	depth uint32 // that the commit records
	want  uint32 // one more than the depth of its deepest parent
}

// mergeParent is a parent of a merge.
type mergeParent struct {
	key   uint64 // of the parent in the table
	merge int    // index in merges
}

// newLinkCheck returns a linkCheck whose table keeps up to rowsPerPartition rows of each partition in
// memory.
func newLinkCheck(rowsPerPartition int) *linkCheck {
	return &linkCheck{seed: maphash.MakeSeed(), table: &objectTable{rowsPerPartition: rowsPerPartition}}
}

// resultOrErrNeedsGraph checks the store. It returns the result for a store that is intact and has no
// unreachable objects, and errNeedsGraph for any other.
func (c *linkCheck) resultOrErrNeedsGraph(ctx context.Context, store objects.Store, o FsckOptions) (*FsckResult, error) {
	defer func() { c.table.closeAndRemove() }()
	a := c.auditCallbacks()
	a.Progress = o.Progress
	if err := auditAnyStore(ctx, store, a); err != nil {
		return nil, err
	}
	return &c.result, c.checkRowsAndCountObjects()
}

// auditCallbacks returns the callbacks that add the content of a store to the table. Begin empties
// the table, because it is called again when the audit starts over.
func (c *linkCheck) auditCallbacks() objects.Audit {
	return objects.Audit{
		Begin: func(int) error {
			c.table.closeAndRemove()
			*c = *newLinkCheck(c.table.rowsPerPartition)
			return nil
		},
		Objects: func(list []objects.Object) error {
			for i := range list {
				c.addObject(&list[i])
			}
			return c.err
		},
		Tombstone: func(t objects.Tombstone) error {
			c.addRow(t.ID, objectInfo{flags: purged, kind: contentIfList(t.Kind), value: clampToUint32(t.Size)})
			return c.err
		},
		Ref: func(r objects.Ref) error {
			c.result.Refs++
			c.addReferences(r.Target)
			return c.err
		},
		Entry: func(e objects.LogEntry) error {
			c.result.Entries++
			for _, u := range e.Refs {
				if !u.New.IsZero() {
					c.addReferences(u.New)
				}
			}
			return c.err
		},
		Damage: func(d objects.Damage) error {
			if !d.ID.IsZero() {
				return errNeedsGraph
			}
			c.result.Damages = append(c.result.Damages, Damage{Damage: d})
			return nil
		},
	}
}

// addObject adds a row for an object, and rows for the objects that it refers to, with the kind,
// depth or size that it expects of them.
func (c *linkCheck) addObject(o *objects.Object) {
	n, err := parseNode(o)
	if err != nil {
		c.err = errNeedsGraph
		return
	}
	info := objectInfo{flags: present, kind: contentIfList(o.Kind), value: n.size}
	if n.parsed {
		info.value = n.depth
	}
	c.addRow(o.ID, info)
	c.addReferences(o.Parents...)
	c.addReferences(o.Links...)
	if n.hasContent {
		c.addRow(o.Links[0], objectInfo{kind: objects.KindContent, value: n.size})
	}
	switch {
	case !n.parsed || len(o.Parents) == 0:
	case len(o.Parents) == 1:
		c.addRow(o.Parents[0], objectInfo{kind: objects.KindCommit, value: n.depth - 1})
	default:
		for _, id := range o.Parents {
			c.parents = append(c.parents, mergeParent{hashOf(c.seed, id), len(c.merges)})
		}
		c.merges = append(c.merges, merge{depth: n.depth})
	}
}

// addReferences adds rows that mark objects as referred to.
func (c *linkCheck) addReferences(ids ...objects.ID) {
	for _, id := range ids {
		c.addRow(id, objectInfo{flags: linked})
	}
}

// addRow adds a row. If the table cannot be written to its file, the check ends with errNeedsGraph, and
// Fsck uses a graph.
func (c *linkCheck) addRow(id objects.ID, info objectInfo) {
	info.key = hashOf(c.seed, id)
	if c.table.add(info) != nil {
		c.err = errNeedsGraph
	}
}

// checkRowsAndCountObjects returns errNeedsGraph unless each object exists, is as its references
// expect, and is referred to. It also counts the objects. That each is referred to shows that every object is
// reachable: objects form a graph without cycles, so if some were unreachable, nothing would refer
// to at least one of them.
func (c *linkCheck) checkRowsAndCountObjects() error {
	slices.SortFunc(c.parents, func(a, b mergeParent) int { return cmp.Compare(a.key, b.key) })
	parents := c.parents
	err := c.table.each(func(info objectInfo) error {
		is := func(flag objectFlags) bool { return info.flags&flag != 0 }
		if is(conflict) || !is(present|purged) || is(present) && !is(linked) {
			return errNeedsGraph
		}
		if !is(present) {
			c.result.Purged++
		} else if c.result.Objects++; info.kind == objects.KindCommit {
			c.result.Commits++
		}
		for ; len(parents) > 0 && parents[0].key == info.key; parents = parents[1:] {
			if info.kind != objects.KindCommit || !is(present) {
				return errNeedsGraph
			}
			m := &c.merges[parents[0].merge]
			m.want = max(m.want, info.value+1)
		}
		return nil
	})
	if err != nil || slices.ContainsFunc(c.merges, func(m merge) bool { return m.depth != m.want }) {
		return errNeedsGraph
	}
	return nil
}

// objectInfo is a row: what an object, or a reference to it, shows about the object.
type objectInfo struct {
	key   uint64
	value uint32       // the depth of a commit, otherwise the size of the data
	kind  objects.Kind // as contentIfList returns it; 0 if unknown, and value too
	flags objectFlags
}

// contentIfList returns KindContent for KindList, and any other kind unchanged: a commit does not
// record whether its content is stored as one object or as a list of chunks.
func contentIfList(kind objects.Kind) objects.Kind {
	if kind == objects.KindList {
		return objects.KindContent
	}
	return kind
}

// objectFlags are bits.
type objectFlags uint8

const (
	present  objectFlags = 1 << iota // the store has the object
	purged                           // the store has a tombstone of it
	linked                           // an object, a ref or a log entry refers to it
	conflict                         // two rows differ in kind or value
)

// join adds another row of the same object to i.
func (i *objectInfo) join(other objectInfo) {
	i.flags |= other.flags
	switch {
	case i.kind == 0:
		i.kind, i.value = other.kind, other.value
	case other.kind != 0 && (other.kind != i.kind || other.value != i.value):
		i.flags |= conflict
	}
}
