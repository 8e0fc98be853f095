package commit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Draft describes a commit to write.
type Draft struct {
	Op         Op            // Append when zero
	Block      content.Block // of an Annotate: a note with the reason, or nil; of a Merge: nil
	Role       content.Role  // content.RoleOf(Block) when zero
	Index      int           // of the block in its message
	Target     objects.ID    // of an Edit, Annotate or Compress
	First      objects.ID    // of a Compress
	Scope      SummaryScope  // of a Compress
	CopyPurged *Commit       // instead of Block: a commit whose purged content this one shares
	Priority   priority.Level
	Time       time.Time
	Author     string
	Key        Key
	Origin     *Origin // may be shared by drafts
	Label      Label

	SecondParent *Commit // of a Merge: the tip of the other history
}

// Write makes the commits of drafts, each the parent of the next and the first on parent (nil: a
// root), and the objects to put for them. It stores nothing. A block that [content.CheckBlock]
// refuses is an error, and content over [content.MaxSize] bytes is an [objects.ErrLimit].
func Write(parent *Commit, drafts ...Draft) (commits []*Commit, put []objects.Object, err error) {
	var w Writer
	w.Reserve(3 * len(drafts)) // a commit, its content and an origin
	commits = make([]*Commit, 0, len(drafts))
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

// Writer makes commits one by one, and collects the objects to put for them. The zero value is ready
// for use.
type Writer struct {
	put     []objects.Object
	origins map[objects.ID]bool // those in put
}

// Reserve makes room for so many objects.
func (w *Writer) Reserve(n int) { w.put = slices.Grow(w.put, n) }

// Objects returns the objects to put for all commits so far.
func (w *Writer) Objects() []objects.Object { return w.put }

// Write makes the commit of a draft on parent (nil: a root), as the function Write does.
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
	if err := w.addContent(c, d); err != nil {
		return nil, err
	}
	if d.Origin != nil {
		c.OriginID = w.addOrigin(d.Origin)
	}
	if !d.Label.IsZero() {
		c.LabelID = w.appendObject(d.Label.Object())
	}
	for _, p := range []*Commit{parent, d.SecondParent} {
		if p != nil {
			c.Depth = max(c.Depth, p.Depth+1)
		}
	}
	w.appendObject(c.encodeAndSetID())
	return c, c.check()
}

// addContent sets the content of c from a draft, and the role where the draft has none.
func (w *Writer) addContent(c *Commit, d *Draft) error {
	role := content.NoRole
	if d.Block != nil {
		size, err := w.addBlock(d.Block)
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

// addOrigin adds an origin, unless an equal one was added before.
func (w *Writer) addOrigin(o *Origin) objects.ID {
	obj := o.Object()
	if !w.origins[obj.ID] {
		if w.origins == nil {
			w.origins = map[objects.ID]bool{}
		}
		w.origins[obj.ID] = true
		w.appendObject(obj)
	}
	return obj.ID
}

func (w *Writer) appendObject(o objects.Object) objects.ID {
	w.put = append(w.put, o)
	return o.ID
}

// addBlock adds the object of a block. If its record is larger than an object may be, these are its
// chunks and then the list of them.
func (w *Writer) addBlock(b content.Block) (size int64, err error) {
	if err := content.CheckBlock(b); err != nil {
		return 0, fmt.Errorf("commit %w", err)
	}
	record := content.Encode(b)
	size = int64(len(record))
	if size > content.MaxSize {
		return 0, fmt.Errorf("commit a block of %d bytes: %w of %d bytes", size, objects.ErrLimit, content.MaxSize)
	}
	if size <= objects.MaxSize {
		w.appendObject(objects.New(objects.KindContent, nil, nil, record))
		return size, nil
	}
	var chunks []objects.ID
	for len(record) > 0 {
		n := min(len(record), objects.MaxSize)
		chunks = append(chunks, w.appendObject(objects.New(objects.KindChunk, nil, nil, record[:n:n])))
		record = record[n:]
	}
	var list canonical.Record
	canonical.Number(&list, fieldListSize, &size, content.MaxSize+1)
	w.appendObject(objects.New(objects.KindList, nil, chunks, list.Bytes()))
	return size, nil
}

// ContentID returns the id that the content of a block has in any commit.
func ContentID(b content.Block) (objects.ID, error) {
	var w Writer
	if _, err := w.addBlock(b); err != nil {
		return objects.ID{}, err
	}
	return w.put[len(w.put)-1].ID, nil
}
