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
				if err := c.add(&list[i]); err != nil {
					return err
				}
			}
			return nil
		},
		Tombstone: func(t objects.Tombstone) error {
			return c.put(t.ID, objectInfo{flags: purged, class: classOf(t.Kind), value: clamp(t.Size)})
		},
		Ref: func(r objects.Ref) error {
			c.result.Refs++
			return c.link(r.Target)
		},
		Entry: func(e objects.LogEntry) error {
			c.result.Entries++
			for _, u := range e.Refs {
				if u.New.IsZero() {
					continue
				}
				if err := c.link(u.New); err != nil {
					return err
				}
			}
			return nil
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

// add adds an object and its links.
func (c *linkCheck) add(o *objects.Object) error {
	n, err := parse(o)
	if err != nil {
		return errUnclear
	}
	if o.Kind == objects.KindCommit {
		return c.addCommit(o, n)
	}
	err = c.put(o.ID, objectInfo{flags: present, class: classOf(o.Kind), value: n.size})
	return cmp.Or(err, c.link(o.Parents...), c.link(o.Links...))
}

// addCommit adds a commit, and what it says of its parents and its content.
func (c *linkCheck) addCommit(o *objects.Object, n node) error {
	err := c.put(o.ID, objectInfo{flags: present, class: commitClass, value: n.depth})
	switch len(o.Parents) {
	case 0:
		if n.depth > 0 {
			return errUnclear
		}
	case 1:
		if n.depth == 0 {
			return errUnclear
		}
		err = cmp.Or(err, c.put(o.Parents[0], objectInfo{flags: linked, class: commitClass, value: n.depth - 1}))
	default:
		c.addMerge(o, n.depth)
		err = cmp.Or(err, c.link(o.Parents...))
	}
	links := o.Links
	if n.says {
		err = cmp.Or(err, c.put(links[0], objectInfo{flags: linked, class: contentClass, value: n.size}))
		links = links[1:]
	}
	return cmp.Or(err, c.link(links...))
}

func (c *linkCheck) addMerge(o *objects.Object, depth uint32) {
	for _, id := range o.Parents {
		c.parents = append(c.parents, mergeParent{hashOf(c.seed, id), len(c.merges)})
	}
	c.merges = append(c.merges, merge{depth: depth})
}

// link adds that something links to objects.
func (c *linkCheck) link(ids ...objects.ID) error {
	for _, id := range ids {
		if err := c.put(id, objectInfo{flags: linked}); err != nil {
			return err
		}
	}
	return nil
}

// put adds what is known of an object. Without room for that, a checker does everything.
func (c *linkCheck) put(id objects.ID, info objectInfo) error {
	info.key = hashOf(c.seed, id)
	if err := c.table.add(info); err != nil {
		return errUnclear
	}
	return nil
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
		if is(present) {
			c.result.Objects++
		} else {
			c.result.Erased++
		}
		if is(present) && info.class == commitClass {
			c.result.Commits++
		}
		for ; len(parents) > 0 && parents[0].key == info.key; parents = parents[1:] {
			if info.class != commitClass || !is(present) {
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
	value uint32 // the depth of a commit, the size of content
	class objectClass
	flags objectFlags
}

// objectClass is what kind an object has. 0: it is not known.
type objectClass uint8

const (
	otherClass objectClass = iota + 1
	commitClass
	contentClass // also lists
)

// objectFlags are bits.
type objectFlags uint8

const (
	present  objectFlags = 1 << iota
	purged               // there is a tombstone
	linked               // an object, a ref or a log entry links to it
	conflict             // it is not what something expects that links to it
)

func classOf(k objects.Kind) objectClass {
	switch k {
	case objects.KindCommit:
		return commitClass
	case objects.KindContent, objects.KindList:
		return contentClass
	default:
		return otherClass
	}
}

// join adds what is known of the same object from elsewhere.
func (i *objectInfo) join(other objectInfo) {
	i.flags |= other.flags
	switch {
	case i.class == 0:
		i.class, i.value = other.class, other.value
	case other.class != 0 && (other.class != i.class || other.value != i.value):
		i.flags |= conflict
	}
}
