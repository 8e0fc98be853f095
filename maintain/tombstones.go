package maintain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// purgePage is how many blocks are read at once to compute what tombstones keep of them.
const purgePage = 256

// addContents adds the content of commits, page by page. It returns the commits whose
// content was not purged yet; of several with equal content, all.
func (w *purge) addContents(ctx context.Context, list []*commit.Commit) (there []*commit.Commit, err error) {
	for len(list) > 0 {
		page := list[:min(len(list), purgePage)]
		list = list[len(page):]
		if err := commit.Load(ctx, w.store, page...); err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Block == nil || c.Tombstone != nil {
				continue
			}
			there = append(there, c)
			w.addContent(c)
			if err := w.addTranscripts(ctx, c.ContentID); err != nil {
				return nil, err
			}
			c.Block = nil
		}
	}
	return there, nil
}

func (w *purge) addContent(c *commit.Commit) {
	w.add(c.ContentID, c.Size, content.Encode(content.Remains(c.Block)))
	if c.Size > objects.MaxSize {
		w.lists = append(w.lists, c.ContentID)
	}
}

// addObject adds an object by its id.
func (w *purge) addObject(ctx context.Context, id objects.ID) error {
	o, err := objects.Read(ctx, w.store, id)
	switch {
	case errors.Is(err, objects.ErrPurged):
		return nil
	case err != nil:
		return err
	case !o.Kind.Purgeable():
		return fmt.Errorf("object %s: a %s cannot be purged", id.Short(), o.Kind)
	case o.Kind != objects.KindContent && o.Kind != objects.KindList:
		w.add(id, int64(len(o.Data)), nil)
		return nil
	}
	block, err := commit.ReadContent(ctx, w.store, id)
	if err != nil {
		return err
	}
	w.addContent(&commit.Commit{ContentID: id, Size: int64(len(content.Encode(block))), Block: block})
	return w.addTranscripts(ctx, id)
}

func (w *purge) add(id objects.ID, size int64, rest []byte) {
	if w.has[id] {
		return
	}
	if len(rest) > maxRest {
		rest = nil // no id of a call is that long
	}
	w.has[id] = true
	w.tombstones = append(w.tombstones, objects.Tombstone{ID: id, Size: size, Time: w.Time, Why: w.Why, Remains: rest})
	w.done.Bytes += size
}

// maxRest is the most bytes of a block that a tombstone keeps.
const maxRest = 1 << 10

// addChunks adds the chunks of long contents, except those that other content shares.
func (w *purge) addChunks(ctx context.Context) error {
	if len(w.lists) == 0 {
		return nil
	}
	all, err := w.store.Find(ctx, objects.KindList, "", 0)
	if err != nil {
		return err
	}
	own, others := map[objects.ID]bool{}, map[objects.ID]bool{}
	for list, err := range w.store.Get(ctx, all) {
		if errors.Is(err, objects.ErrPurged) {
			continue
		}
		if err != nil {
			return err
		}
		for _, chunk := range list.Links {
			if w.has[list.ID] {
				own[chunk] = true
			} else {
				others[chunk] = true
			}
		}
	}
	for chunk := range own {
		if !others[chunk] {
			w.tombstones = append(w.tombstones, objects.Tombstone{ID: chunk, Time: w.Time, Why: w.Why})
		}
	}
	return nil
}

// writeTombstones replaces the added objects by tombstones.
func (w *purge) writeTombstones(ctx context.Context) (err error) {
	if err = w.addChunks(ctx); err == nil {
		w.done.Objects, err = objects.Purge(ctx, w.store, w.tombstones, w.Progress)
	}
	if err == nil {
		w.done.SizeAfter = size(ctx, w.store)
	}
	return err
}

// size returns how many bytes the files of a store take; 0: it has none.
func size(ctx context.Context, s objects.Store) (n int64) {
	if in, ok := objects.As[objects.Maintainer](s); ok {
		_, n, _ = in.Size(ctx) // it is only reported
	}
	return n
}
