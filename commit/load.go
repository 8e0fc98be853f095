package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	words, err := Blocks(ctx, r, ids, func(i int) objects.ID { return rest[i].ID })
	if err != nil {
		return err
	}
	for i, b := range words.Blocks {
		rest[i].fill(b, words.Erased[i])
	}
	return nil
}

// Words is what some contents say, each in its place.
type Words struct {
	Blocks []content.Block
	Erased map[int]*objects.Tombstone // of those that were erased, which have no block
}

// Blocks gives the block of each of the contents with some ids, and reads each once.
// of is the commit that a place in the list is for; an error names it.
func Blocks(ctx context.Context, r objects.Reader, ids []objects.ID, of func(i int) objects.ID) (Words, error) {
	if len(ids) == 0 {
		return Words{}, nil
	}
	w, err := read(ctx, r, ids, objects.Load(ctx, r, ids))
	if errors.Is(err, objects.ErrErased) { // no run holds what was erased
		w, err = read(ctx, r, ids, singly(r.Get(ctx, ids)))
	}
	if err != nil {
		return Words{}, fmt.Errorf("read content: %w", err)
	}
	return w.Words, w.fillAlike(of)
}

// singly gives objects one by one, and goes on after one that was erased.
func singly(list iter.Seq2[objects.Object, error]) iter.Seq2[[]objects.Object, error] {
	return func(yield func([]objects.Object, error) bool) {
		for o, err := range list {
			if !yield([]objects.Object{o}, err) {
				return
			}
		}
	}
}

// reading is Words on their way.
type reading struct {
	Words
	ids    []objects.ID
	next   int                  // mostly they come in the order in which they are asked for
	places map[objects.ID][]int // nil: they did so far
}

func read(ctx context.Context, r objects.Reader, ids []objects.ID, runs iter.Seq2[[]objects.Object, error]) (*reading, error) {
	w := &reading{Words: Words{Blocks: make([]content.Block, len(ids))}, ids: ids}
	var words shelf
	for run, err := range runs {
		left, err := erased(err)
		switch {
		case err != nil:
			return nil, err
		case left != nil && len(run) != 1:
			return nil, &objects.ErasedError{Tombstone: *left}
		}
		words.reserve(run)
		for i := range run {
			var block content.Block
			gone := left
			if gone == nil {
				block, err = words.decode(ctx, r, &run[i])
				gone, err = erased(err) // a chunk of it
			}
			if err != nil {
				return nil, err
			}
			w.put(run[i].ID, block, gone)
		}
	}
	return w, nil
}

func (w *reading) put(id objects.ID, block content.Block, left *objects.Tombstone) {
	if w.places == nil && w.next < len(w.ids) && w.ids[w.next] == id {
		w.set(w.next, block, left)
		w.next++
		return
	}
	if w.places == nil {
		w.places = placesOf(w.ids)
	}
	for _, at := range w.places[id] {
		w.set(at, block, left)
	}
}

func (w *reading) set(at int, block content.Block, left *objects.Tombstone) {
	if w.Blocks[at] = block; left == nil {
		return
	}
	if w.Erased == nil {
		w.Erased = map[int]*objects.Tombstone{}
	}
	w.Erased[at] = left
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
func (w *reading) fillAlike(of func(i int) objects.ID) error {
	for i, id := range w.ids {
		if w.Blocks[i] != nil || w.Erased[i] != nil {
			continue
		}
		if w.places == nil {
			w.places = placesOf(w.ids)
		}
		for _, other := range w.places[id] {
			if w.Blocks[other] != nil || w.Erased[other] != nil {
				w.set(i, w.Blocks[other], w.Erased[other])
				break
			}
		}
		if w.Blocks[i] == nil && w.Erased[i] == nil {
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
		if errors.Is(err, objects.ErrErased) { // a label: nothing is left of it
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

// Content reads one block by the id of its content. One that was erased is an
// [objects.ErrErased].
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
	left, err := erased(err)
	if err != nil {
		return fmt.Errorf("read content of commit %s: %w", c.ID.Short(), err)
	}
	c.fill(block, left)
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
