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

// Load sets the blocks of commits that have content and no block yet. It reads each content once.
func Load(ctx context.Context, r objects.Reader, commits ...*Commit) error {
	wanted := make([]*Commit, 0, len(commits))
	for _, c := range commits {
		if c.Block == nil && !c.ContentID.IsZero() {
			wanted = append(wanted, c)
		}
	}
	return LoadBlocks(ctx, r, LoadRequest{
		Len: len(wanted),
		Content: func(i int) (commit, content objects.ID, locator objects.Locator) {
			return wanted[i].ID, wanted[i].ContentID, wanted[i].Locator
		},
		Put: func(i int, b content.Block, t *objects.Tombstone) { wanted[i].setContent(b, t) },
	})
}

// LoadRequest names the contents that [LoadBlocks] reads, by their places in a list of the caller.
// Several goroutines may call its functions at once, each with different places.
type LoadRequest struct {
	Len int // places are 0 to Len-1

	// Content returns the content at a place and its locator, which may be zero. Errors name the
	// commit.
	Content func(i int) (commit, content objects.ID, locator objects.Locator)

	// Put is given the block, or the tombstone of purged content without a block.
	Put func(i int, b content.Block, t *objects.Tombstone)
}

// LoadBlocks reads the blocks of the requested contents.
func LoadBlocks(ctx context.Context, r objects.Reader, w LoadRequest) error {
	if w.Len == 0 {
		return nil
	}
	got := make([]bool, w.Len)
	err := objects.Load(ctx, r, objects.LoadRequest{
		Len: w.Len,
		At: func(i int) (objects.ID, objects.Locator) {
			_, id, locator := w.Content(i)
			return id, locator
		},
		Give: func(i int, o *objects.Object, err error) error {
			var block content.Block
			if err == nil {
				block, err = decodeContent(ctx, r, o)
			}
			tombstone, err := asTombstone(err) // of the content, or of a chunk of it
			if err != nil {
				return err
			}
			w.Put(i, block, tombstone)
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

// LoadAll is Load, and sets the origins and labels of the commits too.
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
		if errors.Is(err, objects.ErrPurged) { // a label
			delete(wanted, obj.ID)
			continue
		}
		if err != nil {
			return fmt.Errorf("read linked objects of commits: %w", err)
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
		return fmt.Errorf("read linked objects of commit %s: %w", of[0].ID.Short(), &objects.NotFoundError{ID: id})
	}
	return Load(ctx, r, commits...)
}

// ReadContent reads one block by the id of its content. One that was purged is an
// [objects.ErrPurged].
func ReadContent(ctx context.Context, r objects.Reader, id objects.ID) (content.Block, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read content: %w", err)
	}
	return decodeContent(ctx, r, &obj)
}

// decodeContent returns the block of a content object. The block keeps the data of the object.
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

// joinChunks reads the record of content that is stored in chunks.
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

// listSize returns the size of the whole record, as the list of its chunks states it.
func listSize(list objects.Object) (size uint64, err error) {
	r := canonical.NewReader(list.Data)
	canonical.Number(&r, fieldListSize, &size, content.MaxSize+1)
	if err := r.Err(); err != nil {
		return 0, &objects.CorruptError{ID: list.ID, Cause: fmt.Errorf("list record: %w", err)}
	}
	return size, nil
}
