package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Load fills in the blocks of commits that have content and no block yet. It
// reads each content once.
func Load(ctx context.Context, r objects.Reader, commits ...*Commit) error {
	n := 0
	for _, c := range commits {
		if c.Block == nil && !c.Content.IsZero() {
			n++
		}
	}
	rest, ids := make([]*Commit, 0, n), make([]objects.ID, 0, n)
	for _, c := range commits {
		if c.Block == nil && !c.Content.IsZero() {
			rest, ids = append(rest, c), append(ids, c.Content)
		}
	}
	blocks, err := Blocks(ctx, r, ids, func(i int) objects.ID { return rest[i].ID })
	if err != nil {
		return err
	}
	for i, b := range blocks {
		rest[i].Block = b
	}
	return nil
}

// Blocks gives the block of each of the contents with some ids, and reads each once.
// of is the commit that a place in the list is for; an error names it.
func Blocks(ctx context.Context, r objects.Reader, ids []objects.ID, of func(i int) objects.ID) ([]content.Block, error) {
	blocks := make([]content.Block, len(ids))
	if len(ids) == 0 {
		return blocks, nil
	}
	next := 0 // mostly they come in the order in which they are asked for
	var places map[objects.ID][]int
	var words shelf
	for run, err := range objects.Load(ctx, r, ids) {
		if err != nil {
			return nil, fmt.Errorf("read content: %w", err)
		}
		words.reserve(run)
		for i := range run {
			obj := &run[i]
			block, err := words.decode(ctx, r, obj)
			if err != nil {
				return nil, fmt.Errorf("read content: %w", err)
			}
			if places == nil && next < len(ids) && ids[next] == obj.ID {
				blocks[next] = block
				next++
				continue
			}
			if places == nil {
				places = placesOf(ids)
			}
			for _, at := range places[obj.ID] {
				blocks[at] = block
			}
		}
	}
	return blocks, fillAlike(blocks, ids, places, of)
}

func placesOf(ids []objects.ID) map[objects.ID][]int {
	m := make(map[objects.ID][]int, len(ids))
	for i, id := range ids {
		m[id] = append(m[id], i)
	}
	return m
}

// fillAlike gives a block to the other places that asked for it. One that no place
// has was not there.
func fillAlike(blocks []content.Block, ids []objects.ID, places map[objects.ID][]int, of func(i int) objects.ID) error {
	for i, id := range ids {
		if blocks[i] != nil {
			continue
		}
		if places == nil {
			places = placesOf(ids)
		}
		for _, other := range places[id] {
			if blocks[other] != nil {
				blocks[i] = blocks[other]
				break
			}
		}
		if blocks[i] == nil {
			return fmt.Errorf("read content of commit %s: %w", of(i).Short(), &objects.NotFoundError{ID: id})
		}
	}
	return nil
}

// shelf is memory for the words of many blocks, one after the other: to make room
// for each takes as long as to read it.
type shelf struct{ text strings.Builder }

// A shelf is as long as what is put on it, and not longer than shelfSize: one block
// that stays in memory keeps its neighbours there.
const shelfSize = 64 << 10

// reserve makes room for what a run holds, or for the first of it.
func (s *shelf) reserve(run []objects.Object) {
	need := 0
	for i := range run {
		if need += len(run[i].Data); need > shelfSize {
			break
		}
	}
	if s.text.Cap()-s.text.Len() < need {
		s.text.Reset()
		s.text.Grow(min(need, shelfSize))
	}
}

func (s *shelf) decode(ctx context.Context, r objects.Reader, obj *objects.Object) (content.Block, error) {
	if obj.Kind != objects.KindContent || len(obj.Data) > shelfSize/16 {
		return decodeContent(ctx, r, *obj)
	}
	if s.text.Cap()-s.text.Len() < len(obj.Data) {
		s.text.Reset()
		s.text.Grow(shelfSize)
	}
	from := s.text.Len()
	s.text.Write(obj.Data)
	b, err := content.DecodeSharing(obj.Data, s.text.String()[from:])
	if err != nil {
		return nil, &objects.CorruptError{ID: obj.ID, Cause: err}
	}
	return b, nil
}

// LoadAll is Load, and fills in where the commits came from and the words that
// people put on them.
func LoadAll(ctx context.Context, r objects.Reader, commits ...*Commit) error {
	wanted := map[objects.ID][]*Commit{}
	for _, c := range commits {
		if c.From == nil && !c.Origin.IsZero() {
			wanted[c.Origin] = append(wanted[c.Origin], c)
		}
		if c.Words.IsZero() && !c.Label.IsZero() {
			wanted[c.Label] = append(wanted[c.Label], c)
		}
	}
	for obj, err := range r.Get(ctx, slices.Collect(maps.Keys(wanted))) {
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
				c.From = origin
			} else {
				c.Words = label
			}
		}
		delete(wanted, obj.ID)
	}
	for id, of := range wanted {
		return fmt.Errorf("read what commit %s links to: %w", of[0].ID.Short(), &objects.NotFoundError{ID: id})
	}
	return Load(ctx, r, commits...)
}

// Content reads one block by the id of its content.
func Content(ctx context.Context, r objects.Reader, id objects.ID) (content.Block, error) {
	obj, err := objects.Read(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read content: %w", err)
	}
	return decodeContent(ctx, r, obj)
}

// Fill gives a commit its block from the object of its content, which was read
// with it.
func Fill(ctx context.Context, r objects.Reader, c *Commit, obj objects.Object) error {
	block, err := decodeContent(ctx, r, obj)
	if err != nil {
		return fmt.Errorf("read content of commit %s: %w", c.ID.Short(), err)
	}
	c.Block = block
	return nil
}

func decodeContent(ctx context.Context, r objects.Reader, obj objects.Object) (content.Block, error) {
	record := obj.Data
	switch obj.Kind {
	case objects.KindContent:
	case objects.KindList:
		var err error
		if record, err = joinChunks(ctx, r, obj); err != nil {
			return nil, err
		}
	default:
		return nil, &objects.CorruptError{ID: obj.ID, Cause: fmt.Errorf("want content, have a %s", obj.Kind)}
	}
	b, err := content.Decode(record)
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
	d := canon.NewDecoder(list.Data)
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
