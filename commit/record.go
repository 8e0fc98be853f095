package commit

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// object returns the object of c and sets the id of c.
func (c *Commit) object() objects.Object {
	var links []objects.ID
	has := c.linkBits()
	for i, id := range c.linkIDs() {
		if has>>i&1 > 0 {
			links = append(links, id)
		}
	}
	obj := objects.New(objects.KindCommit, c.Parents, links, c.record())
	c.ID = obj.ID
	return obj
}

// linkIDs returns what c may link to, in the order of links; zero ids are not links.
func (c *Commit) linkIDs() [3]objects.ID { return [3]objects.ID{c.ContentID, c.OriginID, c.LabelID} }

// linkBits returns a bit for each of linkIDs that is a link.
func (c *Commit) linkBits() (bits uint64) {
	for i, id := range c.linkIDs() {
		if !id.IsZero() {
			bits |= 1 << i
		}
	}
	return bits
}

// fieldListSize is the field of the list of chunks: the bytes of the whole record.
const fieldListSize = 1

// The fields of a commit record.
const (
	fieldOp = iota + 1
	fieldKind
	fieldRole
	fieldIndex
	fieldSize
	fieldTarget
	fieldPriority
	fieldTime
	fieldAuthor
	fieldKey
	fieldDepth
	fieldLinks // see linkBits
	fieldKeyKind
	fieldImporter
	fieldKeyBlock
	fieldFirst
	fieldCovers
)

// record returns the data of the object of c.
func (c *Commit) record() []byte {
	var e canonical.Encoder
	e.Uint(fieldOp, uint64(c.Op))
	e.Uint(fieldKind, uint64(c.Kind))
	e.Uint(fieldRole, uint64(c.Role))
	e.Uint(fieldIndex, uint64(c.Index))
	e.Uint(fieldSize, uint64(c.Size))
	e.Hash(fieldTarget, c.Target)
	e.Uint(fieldPriority, uint64(c.Priority))
	e.Int(fieldTime, c.Time.UnixMilli())
	e.String(fieldAuthor, c.Author)
	e.String(fieldKey, c.Key.Text)
	e.Uint(fieldDepth, c.Depth)
	e.Uint(fieldLinks, c.linkBits())
	e.Uint(fieldKeyKind, uint64(c.Key.Kind))
	e.String(fieldImporter, c.Key.Importer)
	e.Uint(fieldKeyBlock, uint64(c.Key.Block))
	e.Hash(fieldFirst, c.First)
	e.Uint(fieldCovers, uint64(c.Scope))
	return e.Bytes()
}

// Parse reads the object of a commit. The error for anything that Write does not make is a
// *[objects.CorruptError]. The commit keeps the parents of the object.
func Parse(obj objects.Object) (*Commit, error) {
	c := new(Commit)
	if err := c.parse(&obj); err != nil {
		return nil, err
	}
	return c, nil
}

// parse sets all fields of c that are in the object of a commit. An author that stays the same
// is not allocated again.
func (c *Commit) parse(obj *objects.Object) error {
	err := c.parseRecord(obj, c.Author)
	if err != nil {
		return &objects.CorruptError{ID: obj.ID, Cause: err}
	}
	return nil
}

func (c *Commit) parseRecord(obj *objects.Object, lastAuthor string) (err error) {
	if obj.Kind != objects.KindCommit {
		return fmt.Errorf("want a commit, have a %s", obj.Kind)
	}
	*c = Commit{ID: obj.ID, Parents: obj.Parents}
	links, ok := c.decodeHeaderFast(obj.Data, lastAuthor)
	if !ok {
		*c = Commit{ID: obj.ID, Parents: obj.Parents}
		if links, err = c.decodeHeader(obj.Data); err != nil {
			return err
		}
	}
	return c.setLinks(obj.Links, links)
}

// decodeHeader sets the fields of c from the record of a commit, and returns the bits of its
// links. c must be new.
func (c *Commit) decodeHeader(record []byte) (links uint64, err error) {
	c.Time = time.UnixMilli(0).UTC()
	d := canonical.NewDecoder(record)
	for d.Next() {
		switch d.Field() {
		case fieldOp:
			c.Op = Op(d.Small(uint64(opEnd)))
		case fieldKind:
			c.Kind = content.Kind(d.Small(256))
		case fieldRole:
			c.Role = content.Role(d.Small(256))
		case fieldIndex:
			c.Index = int(d.Small(1 << 31))
		case fieldSize:
			c.Size = int64(d.Small(1 << 62))
		case fieldTarget:
			c.Target = objects.ID(d.Hash())
		case fieldPriority:
			c.Priority = priority.Level(d.Small(uint64(priority.Pinned) + 1))
		case fieldTime:
			c.Time = time.UnixMilli(d.Int()).UTC()
		case fieldAuthor:
			c.Author = d.String()
		case fieldKey:
			c.Key.Text = d.String()
		case fieldDepth:
			c.Depth = d.Uint()
		case fieldLinks:
			links = d.Small(1 << 3)
		case fieldKeyKind:
			c.Key.Kind = KeyKind(d.Small(uint64(keyEnd)))
		case fieldImporter:
			c.Key.Importer = d.String()
		case fieldKeyBlock:
			c.Key.Block = int(d.Small(1 << 31))
		case fieldFirst:
			c.First = objects.ID(d.Hash())
		case fieldCovers:
			c.Scope = SummaryScope(d.Small(uint64(coverEnd)))
		}
	}
	return links, d.Err()
}

// setLinks sets the ids that c links to and checks the commit. The bits of has are those of
// linkBits.
func (c *Commit) setLinks(links []objects.ID, has uint64) error {
	for i, id := range []*objects.ID{&c.ContentID, &c.OriginID, &c.LabelID} {
		if has&(1<<i) != 0 && len(links) > 0 {
			*id, links = links[0], links[1:]
			has &^= 1 << i
		}
	}
	if has != 0 || len(links) != 0 {
		return fmt.Errorf("commit record: %w: its links do not match it", canonical.ErrMalformed)
	}
	return c.check()
}

func malformed(why string) error {
	return fmt.Errorf("commit record: %w: %s", canonical.ErrMalformed, why)
}

// check returns an error for a commit that Write does not make.
func (c *Commit) check() error {
	switch {
	case c.Op == 0:
		return malformed("no operation")
	case !c.Kind.IsKnown():
		return malformed("unknown kind")
	case c.Role > content.RoleTool:
		return malformed("unknown role")
	case c.Op != Annotate && c.Op != Merge && c.ContentID.IsZero():
		return malformed("no content")
	case (c.Op == Append || c.Op == Merge) != c.Target.IsZero():
		return malformed("target does not fit the operation")
	case len(c.Parents) > 2 || (c.Op == Merge) != (len(c.Parents) == 2):
		return malformed("parents do not fit the operation")
	case c.Op == Merge && (c.Parents[0] == c.Parents[1] || !c.ContentID.IsZero()):
		return malformed("a merge of one history, or with content")
	case c.Op == Compress && (c.Kind != content.KindSummary || c.First.IsZero()):
		return malformed("a summary without content or range")
	case c.Op != Compress && (!c.First.IsZero() || c.Scope != ScopeAll):
		return malformed("a range without a summary")
	case (len(c.Parents) == 0) != (c.Depth == 0):
		return malformed("depth does not fit the parents")
	}
	return c.Key.check()
}

// ContentSize returns the size of the content record that an object is, or whose chunks it lists.
func ContentSize(o objects.Object) (int64, error) {
	if o.Kind != objects.KindList {
		return int64(len(o.Data)), nil
	}
	size, err := listSize(o)
	return int64(size), err
}
