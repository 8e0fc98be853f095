package maintain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// purgePage is the number of blocks that are read at once to compute their tombstones.
const purgePage = 256

// selectContents selects the content of commits, page by page. It returns the commits whose content
// was not purged before; when several have equal content, it returns all of them.
func (w *purge) selectContents(ctx context.Context, list []*commit.Commit) (unpurged []*commit.Commit, err error) {
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
			unpurged = append(unpurged, c)
			w.addContentTombstone(c)
			if err := w.selectTranscripts(ctx, c.ContentID); err != nil {
				return nil, err
			}
			c.Block = nil
		}
	}
	return unpurged, nil
}

// addContentTombstone selects the content of a loaded commit.
func (w *purge) addContentTombstone(c *commit.Commit) {
	w.addTombstone(c.ContentID, c.Size, content.Encode(content.Remains(c.Block)))
	if c.Size > objects.MaxSize {
		w.chunked = append(w.chunked, c.ContentID)
	}
}

// selectObject selects an object by its id.
func (w *purge) selectObject(ctx context.Context, id objects.ID) error {
	o, err := objects.Read(ctx, w.store, id)
	switch {
	case errors.Is(err, objects.ErrPurged):
		return nil
	case err != nil:
		return err
	case !o.Kind.Purgeable():
		return fmt.Errorf("object %s: a %s cannot be purged", id.Short(), o.Kind)
	case o.Kind == objects.KindBody:
		return w.selectBodyAndWholeCopy(ctx, o)
	case o.Kind != objects.KindContent && o.Kind != objects.KindList:
		w.addTombstone(id, int64(len(o.Data)), nil)
		return nil
	}
	block, err := commit.ReadContent(ctx, w.store, id)
	if err != nil {
		return err
	}
	w.addContentTombstone(&commit.Commit{ContentID: id, Size: int64(len(content.Encode(block))), Block: block})
	return w.selectTranscripts(ctx, id)
}

// addTombstone adds the tombstone of an object. remains is the part of its block that stays readable,
// such as the id of a tool call; nil: none.
func (w *purge) addTombstone(id objects.ID, size int64, remains []byte) {
	if w.hasTombstone[id] {
		return
	}
	if len(remains) > maxRemains {
		remains = nil // no id of a call is that long
	}
	w.hasTombstone[id] = true
	w.tombstones = append(w.tombstones, objects.Tombstone{ID: id, Size: size, Time: w.Time, Why: w.Why, Remains: remains})
	w.result.Bytes += size
}

// maxRemains is the largest number of bytes of a block that a tombstone keeps.
const maxRemains = 1 << 10

// addChunkTombstones adds tombstones for the chunks of long contents and bodies, except for chunks
// that others share.
func (w *purge) addChunkTombstones(ctx context.Context) error {
	if len(w.chunked) == 0 {
		return nil
	}
	all, err := w.store.Find(ctx, objects.KindList, "", 0)
	if err != nil {
		return err
	}
	bodies, err := w.store.Find(ctx, objects.KindBody, "", 0)
	if err != nil {
		return err
	}
	all = append(all, bodies...)
	own, others := map[objects.ID]bool{}, map[objects.ID]bool{}
	for list, err := range w.store.Get(ctx, all) {
		if errors.Is(err, objects.ErrPurged) {
			continue
		}
		if err != nil {
			return err
		}
		for _, chunk := range list.Links {
			if w.hasTombstone[list.ID] {
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

// purgeSelected replaces the selected objects by tombstones.
func (w *purge) purgeSelected(ctx context.Context) (err error) {
	if err = w.addChunkTombstones(ctx); err == nil {
		err = w.storeBodiesWhole(ctx)
	}
	if err == nil {
		var n int
		n, err = objects.Purge(ctx, w.store, w.tombstones, w.Progress)
		w.result.Objects += n
	}
	if err == nil {
		w.result.SizeAfter = storeSize(ctx, w.store)
	}
	return err
}

// storeSize returns the size of a store's files in bytes; 0 for a store without files.
func storeSize(ctx context.Context, s objects.Store) (n int64) {
	if in, ok := objects.As[objects.Maintainer](s); ok {
		_, n, _ = in.Size(ctx) // it is only reported
	}
	return n
}
