package commit

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// object makes the object of c, and sets the id of c.
func (c *Commit) object() objects.Object {
	var links []objects.ID
	has := c.has()
	for i, id := range c.named() {
		if has>>i&1 > 0 {
			links = append(links, id)
		}
	}
	obj := objects.New(objects.KindCommit, c.Parents, links, c.record())
	c.ID = obj.ID
	return obj
}

// named is what c may link to.
func (c *Commit) named() [3]objects.ID { return [3]objects.ID{c.Content, c.Origin, c.Label} }

// has tells which of these it links to.
func (c *Commit) has() (bits uint64) {
	for i, id := range c.named() {
		if !id.IsZero() {
			bits |= 1 << i
		}
	}
	return bits
}

// record makes the data of the object of c.
func (c *Commit) record() []byte {
	var e canon.Encoder
	e.Uint(1, uint64(c.Op))
	e.Uint(2, uint64(c.Kind))
	e.Uint(3, uint64(c.Role))
	e.Uint(4, uint64(c.Index))
	e.Uint(5, uint64(c.Size))
	c.Target.Encode(&e, 6)
	e.Uint(7, uint64(c.Priority))
	e.Int(8, c.Time.UnixMilli())
	e.String(9, c.Author)
	e.String(10, c.Key)
	e.Uint(11, c.Depth)
	c.Mark.Encode(&e, 12)
	e.Uint(13, uint64(c.Weight.All))
	e.Uint(14, uint64(c.Weight.Sent))
	e.Uint(15, c.has())
	c.First.Encode(&e, 16)
	e.Uint(17, uint64(c.Covers))
	return e.Bytes()
}

// Parse reads the object of a commit. Anything that Write does not make is a
// *[objects.CorruptError]. The commit keeps the parents of the object.
func Parse(obj objects.Object) (*Commit, error) {
	c := new(Commit)
	if err := c.read(&obj, ""); err != nil {
		return nil, err
	}
	return c, nil
}

// Reparse is Parse into a commit that was read before. Where the author is the same,
// nothing is allocated. After an error c is nothing.
func (c *Commit) Reparse(obj objects.Object) error {
	author := c.Author
	*c = Commit{}
	return c.read(&obj, author)
}

// read is Parse into a zero commit.
func (c *Commit) read(obj *objects.Object, author string) error {
	err := error(nil)
	if obj.Kind != objects.KindCommit {
		err = fmt.Errorf("want a commit, have a %s", obj.Kind)
	} else if has, ok := c.scan(obj.Data, author); ok {
		c.ID, c.Parents = obj.ID, obj.Parents
		err = c.finish(obj.Links, has)
	} else {
		err = c.parse(obj)
	}
	if err != nil {
		return &objects.CorruptError{ID: obj.ID, Cause: err}
	}
	return nil
}

// parse reads a record field by field, and says what is wrong with it.
func (c *Commit) parse(obj *objects.Object) error {
	*c = Commit{ID: obj.ID, Parents: obj.Parents}
	more, err := c.decode(obj.Data, recordFields)
	if err != nil {
		return err
	}
	c.Time = time.UnixMilli(more.ms).UTC()
	return c.finish(obj.Links, more.has)
}

// unnamed is what a record says that no field of a commit holds.
type unnamed struct {
	has     uint64 // which links there are
	follows uint64 // in the tag of a fold only: see folder
	ms      int64  // the time
}

// fields is which a record may have, each a bit.
type fields uint32

const (
	recordFields fields = 1<<18 - 1<<1
	tagFields    fields = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<7 | 1<<9 | 1<<15 | 1<<17 | 1<<18 // see folder
	restFields   fields = 1<<5 | 1<<6 | 1<<10 | 1<<16
)

// decode reads a record of some fields into c. Any other is unknown.
func (c *Commit) decode(b []byte, some fields) (more unnamed, err error) {
	d := canon.NewDecoder(b)
	for d.Next() {
		if some>>d.Field()&1 == 0 {
			continue
		}
		switch d.Field() {
		case 1:
			c.Op = Op(d.Small(uint64(opEnd)))
		case 2:
			c.Kind = content.Kind(d.Small(256))
		case 3:
			c.Role = content.Role(d.Small(256))
		case 4:
			c.Index = int(d.Small(1 << 31))
		case 5:
			c.Size = int64(d.Small(1 << 62))
		case 6:
			c.Target = objects.DecodeID(d)
		case 7:
			c.Priority = priority.Level(d.Small(uint64(priority.Pinned) + 1))
		case 8:
			more.ms = d.Int()
		case 9:
			c.Author = d.String()
		case 10:
			c.Key = d.String()
		case 11:
			c.Depth = d.Uint()
		case 12:
			c.Mark = objects.DecodeID(d)
		case 13:
			c.Weight.All = int64(d.Small(1 << 62))
		case 14:
			c.Weight.Sent = int64(d.Small(1 << 62))
		case 15:
			more.has = d.Small(1 << 3)
		case 16:
			c.First = objects.DecodeID(d)
		case 17:
			c.Covers = Cover(d.Small(uint64(coverEnd)))
		case 18:
			more.follows = d.Small(1 << 2)
		}
	}
	return more, d.Err()
}

// finish tells the links apart and checks the whole.
func (c *Commit) finish(links []objects.ID, has uint64) error {
	for i, id := range []*objects.ID{&c.Content, &c.Origin, &c.Label} {
		if has&(1<<i) != 0 && len(links) > 0 {
			*id, links = links[0], links[1:]
			has &^= 1 << i
		}
	}
	if has != 0 || len(links) != 0 {
		return fmt.Errorf("commit record: %w: its links do not match it", canon.ErrMalformed)
	}
	return c.check()
}

func malformed(why string) error { return fmt.Errorf("commit record: %w: %s", canon.ErrMalformed, why) }

func known(k content.Kind) bool { return k.Traits().Name != "" }

// check says what no commit can be.
func (c *Commit) check() error {
	switch {
	case c.Op == 0:
		return malformed("no operation")
	case !known(c.Kind):
		return malformed("unknown kind")
	case c.Role > content.RoleTool:
		return malformed("unknown role")
	case c.Op != Annotate && c.Op != Merge && c.Content.IsZero():
		return malformed("no content")
	case (c.Op == Append || c.Op == Merge) != c.Target.IsZero():
		return malformed("target does not fit the operation")
	case len(c.Parents) > 2 || (c.Op == Merge) != (len(c.Parents) == 2):
		return malformed("parents do not fit the operation")
	case c.Op == Merge && (c.Parents[0] == c.Parents[1] || !c.Content.IsZero()):
		return malformed("a merge of one history, or with words")
	case c.Op == Compress && (c.Kind != content.KindSummary || c.First.IsZero()):
		return malformed("a summary without its words or its range")
	case c.Op != Compress && (!c.First.IsZero() || c.Covers != CoverAll):
		return malformed("a range that no summary stands for")
	case (len(c.Parents) == 0) != (c.Depth == 0):
		return malformed("depth does not fit the parents")
	}
	return nil
}
