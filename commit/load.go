package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
)

// Load fills in the blocks of commits that have content and no block yet. It
// reads each content once.
func Load(ctx context.Context, r objects.Reader, commits ...*Commit) error {
	n := 0
	for _, c := range commits {
		if c.Block == nil && !c.ContentID.IsZero() {
			n++
		}
	}
	rest := make([]*Commit, 0, n)
	for _, c := range commits {
		if c.Block == nil && !c.ContentID.IsZero() {
			rest = append(rest, c)
		}
	}
	return LoadBlocks(ctx, r, LoadRequest{
		Len: n,
		Content: func(i int) (commit, content objects.ID, spot objects.Locator) {
			return rest[i].ID, rest[i].ContentID, rest[i].Locator
		},
		Put: func(i int, b content.Block, left *objects.Tombstone) { rest[i].fill(b, left) },
	})
}

// LoadRequest is contents that are asked for, by their places in some list. Its functions
// may be called by several goroutines at once, with different places.
type LoadRequest struct {
	Len int

	// Content is the content that a place is for, and where it lies if that is known. An
	// error names the commit.
	Content func(i int) (commit, content objects.ID, spot objects.Locator)

	// Objects takes the block, or the tombstone of one that was erased, which has none.
	Put func(i int, b content.Block, left *objects.Tombstone)
}

// LoadBlocks gives the block of each of the wanted contents.
func LoadBlocks(ctx context.Context, r objects.Reader, w LoadRequest) error {
	if w.Len == 0 {
		return nil
	}
	got := make([]bool, w.Len)
	err := objects.Load(ctx, r, objects.LoadRequest{
		Len: w.Len,
		At: func(i int) (objects.ID, objects.Locator) {
			_, id, spot := w.Content(i)
			return id, spot
		},
		Give: func(i int, o *objects.Object, err error) error {
			var block content.Block
			if err == nil {
				block, err = decodeContent(ctx, r, o)
			}
			left, err := erased(err) // it, or a chunk of it
			if err != nil {
				return err
			}
			w.Put(i, block, left)
			got[i] = true
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("read content: %w", err)
	}
	if i := slices.Index(got, false); i >= 0 {
		of, id, _ := w.Content(i)
		return fmt.Errorf("read content of commit %s: %w", of.Short(), &objects.NotFoundError{ID: id})
	}
	return nil
}

// LoadAll is Load, and fills in where the commits came from and the words that
// people put on them.
func LoadAll(ctx context.Context, r objects.Reader, commits ...*Commit) error {
	wanted := map[objects.ID][]*Commit{}
	for _, c := range commits {
		if c.Origin == nil && !c.OriginID.IsZero() {
			wanted[c.OriginID] = append(wanted[c.OriginID], c)
		}
		if c.Label.IsZero() && !c.LabelID.IsZero() {
			wanted[c.LabelID] = append(wanted[c.LabelID], c)
		}
	}
	for obj, err := range r.Get(ctx, slices.Collect(maps.Keys(wanted))) {
		if errors.Is(err, objects.ErrPurged) { // a label: nothing is left of it
			delete(wanted, obj.ID)
			continue
		}
		if err != nil {
			return fmt.Errorf("read what commits link to: %w", err)
		}
		var origin *Origin
		var label Label
		if obj.Kind == objects.KindLabel {
			label, err = ParseLabel(obj)
		} else {
			origin, err = ParseOrigin(obj)
		}
		if err != nil {
			return err
		}
		for _, c := range wanted[obj.ID] {
			if origin != nil {
				c.Origin = origin
			} else {
				c.Label = label
			}
		}
		delete(wanted, obj.ID)
	}
	for id, of := range wanted {
		return fmt.Errorf("read what commit %s links to: %w", of[0].ID.Short(), &objects.NotFoundError{ID: id})
	}
	return Load(ctx, r, commits...)
}

// ContentID reads one block by the id of its content. One that was erased is an
// [objects.ErrPurged].
func ReadContent(ctx context.Context, r objects.Reader, id objects.ID) (content.Block, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read content: %w", err)
	}
	return decodeContent(ctx, r, &obj)
}

// SetBlock gives a commit its block from the object of its content, which was read
// with it.
func SetBlock(ctx context.Context, r objects.Reader, c *Commit, obj objects.Object) error {
	block, err := decodeContent(ctx, r, &obj)
	left, err := erased(err)
	if err != nil {
		return fmt.Errorf("read content of commit %s: %w", c.ID.Short(), err)
	}
	c.fill(block, left)
	return nil
}

// decodeContent gives the block of a content, which keeps the data of the object.
func decodeContent(ctx context.Context, r objects.Reader, obj *objects.Object) (content.Block, error) {
	record := obj.Data
	switch obj.Kind {
	case objects.KindContent:
	case objects.KindList:
		var err error
		if record, err = joinChunks(ctx, r, *obj); err != nil {
			return nil, err
		}
	default:
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("want content, have a %s", obj.Kind)}
	}
	b, err := content.DecodeNoCopy(record)
	if err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: err}
	}
	return b, nil
}

// joinChunks reads the content that a list cuts into chunks.
func joinChunks(ctx context.Context, r objects.Reader, list objects.Object) ([]byte, error) {
	size, err := listSize(list)
	if err != nil {
		return nil, err
	}
	record := make([]byte, 0, size)
	for _, id := range list.Links {
		chunk, err := objects.Read(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if chunk.Kind != objects.KindChunk || len(record)+len(chunk.Data) > int(size) {
			return nil, &objects.CorruptError{ID: list.ID, Cause: fmt.Errorf("chunk %s does not fit", id.Short())}
		}
		record = append(record, chunk.Data...)
	}
	if len(record) != int(size) {
		return nil, &objects.CorruptError{ID: list.ID, Cause: fmt.Errorf("%d bytes of %d", len(record), size)}
	}
	return record, nil
}

// listSize is the size that a list says the whole has.
func listSize(list objects.Object) (size uint64, err error) {
	d := canonical.NewDecoder(list.Data)
	for d.Next() {
		if d.Field() == 1 {
			size = d.Small(content.MaxSize + 1)
		}
	}
	if err := d.Err(); err != nil {
		return 0, &objects.CorruptError{ID: list.ID, Cause: fmt.Errorf("list record: %w", err)}
	}
	return size, nil
}
