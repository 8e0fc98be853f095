package commit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Draft is a commit that is not written yet.
type Draft struct {
	Op         Op            // Append when zero
	Block      content.Block // of an Annotate: a note with the reason; of a Merge: a summary; may be nil of both
	Role       content.Role  // who says it; content.RoleOf(Block) when zero
	Index      int           // of the block in its message
	Target     objects.ID    // of an Edit, Annotate or Compress
	First      objects.ID    // of a Compress
	Scope      SummaryScope  // of a Compress
	CopyPurged *Commit       // in the place of Block: whose erased content the commit has, such as that of the one it copies
	Priority   priority.Level
	Time       time.Time
	Author     string
	Key        Key
	Origin     *Origin // may be shared by drafts
	Label      Label

	SecondParent *Commit // of a Merge: the tip of the other history
}

// Write makes the commits of drafts, one upon the other, the first upon parent
// (nil: a root), and the objects that have to be put for them. It writes
// nothing. A block that [content.CheckBlock] refuses is an error, and content over
// [content.MaxSize] bytes is an [objects.ErrLimit].
func Write(parent *Commit, drafts ...Draft) (commits []*Commit, put []objects.Object, err error) {
	var w Writer
	for i := range drafts {
		c, err := w.Write(parent, &drafts[i])
		if err != nil {
			return nil, nil, err
		}
		commits = append(commits, c)
		parent = c
	}
	return commits, w.put, nil
}

// Writer makes commits one after another, and gathers the objects that have to be put
// for them. The zero value is ready for use.
type Writer struct {
	put     []objects.Object
	origins map[objects.ID]bool // that are in put
}

// Objects is the objects gathered so far.
func (w *Writer) Objects() []objects.Object { return w.put }

// Write makes the commit of a draft upon parent (nil: a root), as the function does.
func (w *Writer) Write(parent *Commit, d *Draft) (*Commit, error) {
	c := &Commit{
		Op: max(d.Op, Append), Role: d.Role, Index: d.Index, Target: d.Target, First: d.First, Scope: d.Scope, Priority: d.Priority,
		Time: d.Time.UTC().Truncate(time.Millisecond), Author: d.Author, Key: d.Key, Kind: content.KindNote,
	}
	if parent != nil {
		c.Parents = append(c.Parents, parent.ID)
	}
	if d.SecondParent != nil {
		c.Parents = append(c.Parents, d.SecondParent.ID)
	}
	if err := w.content(c, d); err != nil {
		return nil, err
	}
	if d.Origin != nil {
		c.OriginID = w.origin(d.Origin)
	}
	if !d.Label.IsZero() {
		c.LabelID = w.object(d.Label.Object())
	}
	for _, p := range []*Commit{parent, d.SecondParent} {
		if p != nil {
			c.Depth = max(c.Depth, p.Depth+1)
		}
	}
	w.object(c.object())
	return c, c.check()
}

// content gives c the block of a draft, or the erased one in the place of it. The
// role follows from it where the draft names none.
func (w *Writer) content(c *Commit, d *Draft) error {
	role := content.NoRole
	if d.Block != nil {
		size, err := w.block(d.Block)
		if err != nil {
			return err
		}
		c.ContentID, c.Size, c.Kind, c.Block = w.put[len(w.put)-1].ID, size, d.Block.Kind(), d.Block
		role = content.RoleOf(d.Block)
	}
	if e := d.CopyPurged; e != nil {
		c.ContentID, c.Size, c.Kind, c.Block, c.Tombstone = e.ContentID, e.Size, e.Kind, e.Block, e.Tombstone
		role = cmp.Or(role, e.Role)
	}
	c.Role = cmp.Or(c.Role, role)
	return nil
}

// origin puts an origin once, however many drafts share it or have equal ones.
func (w *Writer) origin(o *Origin) objects.ID {
	obj := o.Object()
	if !w.origins[obj.ID] {
		if w.origins == nil {
			w.origins = map[objects.ID]bool{}
		}
		w.origins[obj.ID] = true
		w.object(obj)
	}
	return obj.ID
}

func (w *Writer) object(o objects.Object) objects.ID {
	w.put = append(w.put, o)
	return o.ID
}

// block makes the object of a block; when its record is larger than an object may
// be, the chunks of it and then a list of them.
func (w *Writer) block(b content.Block) (size int64, err error) {
	if err := content.CheckBlock(b); err != nil {
		return 0, fmt.Errorf("commit %w", err)
	}
	record := content.Encode(b)
	size = int64(len(record))
	if size > content.MaxSize {
		return 0, fmt.Errorf("commit a block of %d bytes: %w of %d bytes", size, objects.ErrLimit, content.MaxSize)
	}
	if size <= objects.MaxSize {
		w.object(objects.New(objects.KindContent, nil, nil, record))
		return size, nil
	}
	var chunks []objects.ID
	for len(record) > 0 {
		n := min(len(record), objects.MaxSize)
		chunks = append(chunks, w.object(objects.New(objects.KindChunk, nil, nil, record[:n:n])))
		record = record[n:]
	}
	var list canonical.Encoder
	list.Uint(1, uint64(size))
	w.object(objects.New(objects.KindList, nil, chunks, list.Bytes()))
	return size, nil
}

// ContentID is the id that the content of a commit of the block would have.
func ContentID(b content.Block) (objects.ID, error) {
	var w Writer
	if _, err := w.block(b); err != nil {
		return objects.ID{}, err
	}
	return w.put[len(w.put)-1].ID, nil
}
