package commit

import (
	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/objects"
)

// folder tells commits in the few bytes that do not follow from what lies beside them.
//
//	tag   canonical record of what many have in common: fields 1, 2, 3, 4, 7, 9, 15 and
//	      17 of a commit; 18 what follows: +1 the size is that of the content, which is
//	      in the sheet, +2 the index is one above that of the first parent
//	own   milliseconds since the time of the first parent, of a root since 1970, in
//	      zigzag
//	rest  canonical record of fields 5 (unless it follows), 6, 10 and 16 of a commit
//
// Depth, mark and weight are those that a commit derives from its first parent, which
// is in the sheet. A merge, and a commit whose first parent is elsewhere, is not folded.
type folder struct{}

// foldUpon is how many commits are told one by the other: damage to one of them goes no
// further than to the next that is kept as it is.
const foldUpon = 64

// foldNumber is that of the folder in sheets.
const foldNumber = 1

// What follows, in field 18 of a tag.
const (
	followsSize  = 1 << 0
	followsIndex = 1 << 1
)

func init() { objects.RegisterFold(foldNumber, folder{}) } //nolint:gochecknoinits // a registry

// Fold is objects.Fold.
func (folder) Fold(list []objects.Object) []objects.Folded {
	folded := make([]objects.Folded, len(list))
	places := make(map[objects.ID]int, len(list))
	commits := make([]*Commit, len(list))
	upon := make([]int, len(list)) // how many it is told by
	for i := range list {
		o := &list[i]
		places[o.ID] = i
		if o.Kind != objects.KindCommit {
			continue
		}
		c := new(Commit)
		if c.read(o, "") != nil {
			continue
		}
		commits[i] = c
		var parent *Commit
		by := 0
		if len(c.Parents) > 0 {
			if at, ok := places[c.Parents[0]]; ok {
				parent, by = commits[at], upon[at]+1
			}
		}
		if by == foldUpon || c.Op == Merge || (parent == nil) != (len(c.Parents) == 0) || c.CheckDerived(parent, nil, nil) != nil {
			continue
		}
		size := int64(-1)
		if at, ok := places[c.Content]; ok && list[at].Kind == objects.KindContent {
			size = int64(len(list[at].Data))
		}
		folded[i], upon[i] = c.fold(parent, size), by
	}
	return folded
}

// fold tells c in short. size is that of its content, if that is known.
func (c *Commit) fold(parent *Commit, size int64) (f objects.Folded) {
	follows, since, index := uint64(0), int64(0), c.Index
	if parent != nil {
		if since = parent.Time.UnixMilli(); index == parent.Index+1 {
			follows, index = followsIndex, 0
		}
	}
	var rest canon.Encoder
	if c.Size == size {
		follows |= followsSize
	} else {
		rest.Uint(5, uint64(c.Size))
	}
	c.Target.Encode(&rest, 6)
	rest.String(10, c.Key)
	c.First.Encode(&rest, 16)
	var tag canon.Encoder
	tag.Uint(1, uint64(c.Op))
	tag.Uint(2, uint64(c.Kind))
	tag.Uint(3, uint64(c.Role))
	tag.Uint(4, uint64(index))
	tag.Uint(7, uint64(c.Priority))
	tag.String(9, c.Author)
	tag.Uint(15, c.has())
	tag.Uint(17, uint64(c.Covers))
	tag.Uint(18, follows)
	ms := c.Time.UnixMilli() - since
	return objects.Folded{Tag: tag.Bytes(), Own: uint64(ms<<1 ^ ms>>63), Rest: rest.Bytes()}
}

// Unfold is objects.Fold.
func (folder) Unfold(s *objects.Sheet, before objects.Unfolded) objects.Unfolded {
	r, ok := before.(*rows)
	if !ok {
		r = new(rows)
	}
	r.read(s)
	return r
}
