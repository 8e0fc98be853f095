package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// ever yields every commit of the store that has a name or had one: the histories of
// branches, tags and rescued responses, and of where these once were, which the ref log
// keeps.
func (r *Repo) ever(ctx context.Context) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		seen := map[objects.ID]bool{}
		for _, find := range []func(context.Context, map[objects.ID]bool) ([]objects.ID, error){r.presentTips, r.formerTips} {
			tips, err := find(ctx, seen)
			if err != nil {
				yield(nil, err)
				return
			}
			for c, err := range history.All(ctx, r.store, tips, seen) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

func (r *Repo) presentTips(ctx context.Context, _ map[objects.ID]bool) ([]objects.ID, error) {
	return history.Tips(ctx, r.store)
}

// formerTips is where refs once were, as far as it was not seen and is there: of a store
// that was recovered it need not be.
func (r *Repo) formerTips(ctx context.Context, seen map[objects.ID]bool) ([]objects.ID, error) {
	log, err := r.store.Log(ctx, "", 0, 0)
	if err != nil {
		return nil, err
	}
	var former []objects.ID
	listed := map[objects.ID]bool{{}: true}
	for _, entry := range log {
		for _, u := range entry.Refs {
			if !seen[u.New] && !listed[u.New] && !strings.HasPrefix(u.Name, refs.Describe) {
				listed[u.New], former = true, append(former, u.New)
			}
		}
	}
	missing, err := r.store.Missing(ctx, former)
	return slices.DeleteFunc(former, func(id objects.ID) bool { return slices.Contains(missing, id) }), err
}

// erasePage is how many blocks are read at once to compute what tombstones leave of them.
const erasePage = 256

// contents adds the content of commits, page by page. It returns the commits whose
// content was there; of several with equal content, all.
func (w *purge) contents(ctx context.Context, list []*commit.Commit) (there []*commit.Commit, err error) {
	for len(list) > 0 {
		page := list[:min(len(list), erasePage)]
		list = list[len(page):]
		if err := commit.Load(ctx, w.repo.store, page...); err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Block == nil || c.Erased != nil {
				continue
			}
			there = append(there, c)
			w.addContent(c)
			w.copied(c.Block)
			c.Block = nil
		}
	}
	return there, nil
}

func (w *purge) addContent(c *commit.Commit) {
	w.add(c.Content, c.Size, content.Encode(content.Left(c.Block)))
	if c.Size > objects.MaxSize {
		w.lists = append(w.lists, c.Content)
	}
}

// object adds an object by its id.
func (w *purge) object(ctx context.Context, id objects.ID) error {
	o, err := objects.Read(ctx, w.repo.store, id)
	switch {
	case errors.Is(err, objects.ErrErased):
		return nil
	case err != nil:
		return err
	case !o.Kind.Erasable():
		return fmt.Errorf("object %s: a %s is never erased", id.Short(), o.Kind)
	case o.Kind != objects.KindContent && o.Kind != objects.KindList:
		w.add(id, int64(len(o.Data)), nil)
		return nil
	}
	block, err := commit.Content(ctx, w.repo.store, id)
	if err != nil {
		return err
	}
	w.addContent(&commit.Commit{Content: id, Size: int64(len(content.Encode(block))), Block: block})
	w.copied(block)
	return nil
}

func (w *purge) add(id objects.ID, size int64, rest []byte) {
	if w.has[id] {
		return
	}
	if len(rest) > mostLeft {
		rest = nil // nobody gives a call an id of that length
	}
	w.has[id] = true
	w.tombstones = append(w.tombstones, objects.Tombstone{ID: id, Size: size, Time: w.call.now, Why: w.Why, Rest: rest})
	w.done.Bytes += size
}

// mostLeft is the most bytes of a block that a tombstone leaves.
const mostLeft = 1 << 10

// chunks adds the chunks of long contents, except those that other content shares.
func (w *purge) chunks(ctx context.Context) error {
	if len(w.lists) == 0 {
		return nil
	}
	all, err := w.repo.store.Find(ctx, objects.KindList, "", 0)
	if err != nil {
		return err
	}
	own, others := map[objects.ID]bool{}, map[objects.ID]bool{}
	for list, err := range w.repo.store.Get(ctx, all) {
		if errors.Is(err, objects.ErrErased) {
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
			w.tombstones = append(w.tombstones, objects.Tombstone{ID: chunk, Time: w.call.now, Why: w.Why})
		}
	}
	return nil
}

// erase replaces the objects that were added by tombstones.
func (w *purge) erase(ctx context.Context) (err error) {
	if err = w.chunks(ctx); err == nil {
		w.done.Objects, err = objects.Erase(ctx, w.repo.store, w.tombstones, w.Progress)
	}
	if err == nil {
		w.done.SizeAfter = w.repo.size(ctx)
	}
	return err
}

// size is how many bytes the store takes; 0 when it lies in no file.
func (r *Repo) size(ctx context.Context) (n int64) {
	if in, ok := objects.As[objects.Sizer](r.store); ok {
		_, n, _ = in.Size(ctx) // it is only told
	}
	return n
}
