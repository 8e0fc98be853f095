package commit

import (
	"bytes"
	"slices"
	"sync"

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
	f := foldRooms.Get().(*foldRoom) //nolint:forcetypeassert // it holds nothing else
	defer f.leave()
	f.reserve(list)
	var told shorter
	author := ""
	for i := range list {
		o := &list[i]
		f.places[o.ID] = i
		if o.Kind != objects.KindCommit {
			continue
		}
		c := f.next()
		if c.read(o, author) != nil {
			continue
		}
		f.commits[i], author = c, c.Author
		var parent *Commit
		by := 0
		if len(c.Parents) > 0 {
			if at, ok := f.places[c.Parents[0]]; ok {
				parent, by = f.commits[at], f.upon[at]+1
			}
		}
		if by == foldUpon || c.Op == Merge || (parent == nil) != (len(c.Parents) == 0) || c.CheckDerived(parent, nil, nil) != nil {
			continue
		}
		size := int64(-1)
		if at, ok := f.places[c.Content]; ok && list[at].Kind == objects.KindContent {
			size = int64(len(list[at].Data))
		}
		folded[i], f.upon[i] = told.tell(c, parent, size), by
	}
	return folded
}

// foldRoom is memory for one Fold after the other.
type foldRoom struct {
	places  map[objects.ID]int
	read    []Commit
	commits []*Commit // by place: what was read
	upon    []int     // by place: how many it is told by
}

var foldRooms = sync.Pool{New: func() any { return &foldRoom{places: map[objects.ID]int{}} }}

// reserve makes room for a list.
func (f *foldRoom) reserve(list []objects.Object) {
	commits := 0
	for i := range list {
		if list[i].Kind == objects.KindCommit {
			commits++
		}
	}
	f.read = slices.Grow(f.read, commits)
	f.commits, f.upon = slices.Grow(f.commits, len(list))[:len(list)], slices.Grow(f.upon, len(list))[:len(list)]
}

// next is a commit to be read, whose place was reserved.
func (f *foldRoom) next() *Commit {
	f.read = f.read[:len(f.read)+1]
	return &f.read[len(f.read)-1]
}

// leave gives the room to others, empty.
func (f *foldRoom) leave() {
	clear(f.places)
	clear(f.read)
	clear(f.commits)
	clear(f.upon)
	f.read, f.commits, f.upon = f.read[:0], f.commits[:0], f.upon[:0]
	foldRooms.Put(f)
}

// shorter tells commits in short.
type shorter struct {
	space space
	tag   []byte // the last one
}

// About how many bytes a tag has beside the author, and a rest beside the key.
const (
	tagRoom  = 32
	restRoom = 16
)

// tell tells c in short. size is that of its content, if that is known.
func (t *shorter) tell(c, parent *Commit, size int64) objects.Folded {
	follows, since, index := uint64(0), int64(0), c.Index
	if parent != nil {
		if since = parent.Time.UnixMilli(); index == parent.Index+1 {
			follows, index = followsIndex, 0
		}
	}
	rest := t.space.encoder(restRoom + len(c.Key))
	if c.Size == size {
		follows |= followsSize
	} else {
		rest.Uint(5, uint64(c.Size))
	}
	c.Target.Encode(&rest, 6)
	rest.String(10, c.Key)
	c.First.Encode(&rest, 16)
	ms := c.Time.UnixMilli() - since
	f := objects.Folded{Own: uint64(ms<<1 ^ ms>>63), Rest: t.space.keep(rest.Bytes())}
	tag := t.space.encoder(tagRoom + len(c.Author))
	tag.Uint(1, uint64(c.Op))
	tag.Uint(2, uint64(c.Kind))
	tag.Uint(3, uint64(c.Role))
	tag.Uint(4, uint64(index))
	tag.Uint(7, uint64(c.Priority))
	tag.String(9, c.Author)
	tag.Uint(15, c.has())
	tag.Uint(17, uint64(c.Covers))
	tag.Uint(18, follows)
	if !bytes.Equal(tag.Bytes(), t.tag) {
		t.tag = t.space.keep(tag.Bytes())
	}
	f.Tag = t.tag
	return f
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
