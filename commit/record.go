package commit

import (
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// encodeAndSetID returns the object of c, and sets the id of c to that of the object.
func (c *Commit) encodeAndSetID() objects.Object {
	var links []objects.ID
	has := c.linkBits()
	for i, id := range c.linkIDs() {
		if has>>i&1 > 0 {
			links = append(links, id)
		}
	}
	var r canonical.Record
	c.fields(&r, &has)
	obj := objects.New(objects.KindCommit, c.Parents, links, r.Bytes())
	c.ID = obj.ID
	return obj
}

// linkIDs returns what c may link to, in the order of links; zero ids are not links.
func (c *Commit) linkIDs() (contentOriginLabel [3]objects.ID) {
	return [3]objects.ID{c.ContentID, c.OriginID, c.LabelID}
}

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

// fields writes the fields of the record of c and the bits of its links, or reads them.
func (c *Commit) fields(r *canonical.Record, links *uint64) {
	canonical.Number(r, fieldOp, &c.Op, uint64(opEnd))
	canonical.Number(r, fieldKind, &c.Kind, 256)
	canonical.Number(r, fieldRole, &c.Role, 256)
	canonical.Number(r, fieldIndex, &c.Index, 1<<31)
	canonical.Number(r, fieldSize, &c.Size, 1<<62)
	r.Hash(fieldTarget, (*[32]byte)(&c.Target))
	canonical.Number(r, fieldPriority, &c.Priority, uint64(priority.Pinned)+1)
	r.Time(fieldTime, &c.Time)
	r.String(fieldAuthor, &c.Author)
	r.String(fieldKey, &c.Key.Text)
	r.Uint(fieldDepth, &c.Depth)
	canonical.Number(r, fieldLinks, links, 1<<3)
	canonical.Number(r, fieldKeyKind, &c.Key.Kind, uint64(keyEnd))
	r.String(fieldImporter, &c.Key.Importer)
	canonical.Number(r, fieldKeyBlock, &c.Key.Block, 1<<31)
	r.Hash(fieldFirst, (*[32]byte)(&c.First))
	canonical.Number(r, fieldCovers, &c.Scope, uint64(coverEnd))
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
	if err = c.setLinks(obj.Links, links); err != nil {
		return err
	}
	return c.check()
}

// decodeHeader sets the fields of c from the record of a commit, and returns the bits of its
// links. c must be new.
func (c *Commit) decodeHeader(record []byte) (links uint64, err error) {
	r := canonical.NewReader(record)
	c.fields(&r, &links)
	return links, r.Err()
}

// setLinks sets the ids that c links to. The bits of has are those of linkBits.
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
	return nil
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
	return c.Key.checkFieldsOfKind()
}

// ContentSize returns the size of the content record that an object is, or whose chunks it lists.
func ContentSize(o objects.Object) (int64, error) {
	if o.Kind != objects.KindList {
		return int64(len(o.Data)), nil
	}
	size, err := listSize(o)
	return int64(size), err
}
