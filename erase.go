package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Erasure is what taking words away has come to. Nothing brings them back.
type Erasure struct {
	Objects    int   // that were erased
	Bytes      int64 // of words that went, or would
	SizeBefore int64 // bytes of the store
	SizeAfter  int64 // the same as before when nothing was done
}

// erasing gathers what is to be erased.
type erasing struct {
	repo   *Repo
	why    string
	now    time.Time
	graves []objects.Tombstone
	lists  []objects.ID // among them: content in chunks
	has    map[objects.ID]bool
	shown  []shown
	copies []*commit.Commit // of shown, those that go
	done   Erasure
}

func (r *Repo) newErasing(ctx context.Context, c *call, why string) (*erasing, error) {
	e := &erasing{repo: r, why: why, now: c.now, has: map[objects.ID]bool{}}
	return e, e.findShown(ctx)
}

// ever yields every commit of the store that has a name or had one: the histories of
// branches, tags and rescued replies, and of what these once were, which the ref log
// keeps with all words.
func (r *Repo) ever(ctx context.Context) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		seen := map[objects.ID]bool{}
		for _, find := range []func(context.Context, map[objects.ID]bool) ([]objects.ID, error){r.presentTips, r.formerTips} {
			tips, err := find(ctx, seen)
			if err != nil {
				yield(nil, err)
				return
			}
			for c, err := range r.unseen(ctx, tips, seen) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

func (r *Repo) presentTips(ctx context.Context, _ map[objects.ID]bool) ([]objects.ID, error) {
	return r.tips(ctx, nil)
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

// erasePage is how many blocks are read at once to see what is left of them.
const erasePage = 256

// contents adds the words of commits, which it reads and forgets again. It gives those
// whose words were there; of several that say the same, all.
func (e *erasing) contents(ctx context.Context, list []*commit.Commit) (there []*commit.Commit, err error) {
	for len(list) > 0 {
		page := list[:min(len(list), erasePage)]
		list = list[len(page):]
		if err := commit.Load(ctx, e.repo.store, page...); err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Block == nil || c.Erased != nil {
				continue
			}
			there = append(there, c)
			e.addContent(c)
			e.copied(c.Block)
			c.Block = nil
		}
	}
	return there, nil
}

func (e *erasing) addContent(c *commit.Commit) {
	e.add(c.Content, c.Size, content.Encode(content.Left(c.Block)))
	if c.Size > objects.MaxSize {
		e.lists = append(e.lists, c.Content)
	}
}

// object adds an object by its own id.
func (e *erasing) object(ctx context.Context, id objects.ID) error {
	o, err := objects.Read(ctx, e.repo.store, id)
	switch {
	case errors.Is(err, objects.ErrErased):
		return nil
	case err != nil:
		return err
	case !o.Kind.Erasable():
		return fmt.Errorf("object %s: a %s is never erased", id.Short(), o.Kind)
	case o.Kind != objects.KindContent && o.Kind != objects.KindList:
		e.add(id, int64(len(o.Data)), nil)
		return nil
	}
	block, err := commit.Content(ctx, e.repo.store, id)
	if err != nil {
		return err
	}
	e.addContent(&commit.Commit{Content: id, Size: int64(len(content.Encode(block))), Block: block})
	e.copied(block)
	return nil
}

// label adds the words that a person put on a commit.
func (e *erasing) label(c *commit.Commit) {
	if !c.Label.IsZero() && !c.Words.IsZero() {
		e.add(c.Label, int64(len(c.Words.Object().Data)), nil)
	}
}

func (e *erasing) add(id objects.ID, size int64, rest []byte) {
	if e.has[id] {
		return
	}
	if len(rest) > mostLeft {
		rest = nil // nobody gives a call an id of that length
	}
	e.has[id] = true
	e.graves = append(e.graves, objects.Tombstone{ID: id, Size: size, Time: e.now, Why: e.why, Rest: rest})
	e.done.Bytes += size
}

// mostLeft is most of a block that is left.
const mostLeft = 1 << 10

// chunks adds the chunks of long contents, but for those that another has too.
func (e *erasing) chunks(ctx context.Context) error {
	if len(e.lists) == 0 {
		return nil
	}
	all, err := e.repo.store.Find(ctx, objects.KindList, "", 0)
	if err != nil {
		return err
	}
	own, others := map[objects.ID]bool{}, map[objects.ID]bool{}
	for list, err := range e.repo.store.Get(ctx, all) {
		if errors.Is(err, objects.ErrErased) {
			continue
		}
		if err != nil {
			return err
		}
		for _, chunk := range list.Links {
			if e.has[list.ID] {
				own[chunk] = true
			} else {
				others[chunk] = true
			}
		}
	}
	for chunk := range own {
		if !others[chunk] {
			e.graves = append(e.graves, objects.Tombstone{ID: chunk, Time: e.now, Why: e.why})
		}
	}
	return nil
}

// erase does it, unless it is only to be said what would be done.
func (e *erasing) erase(ctx context.Context, dry bool, progress func(done, total int64)) (Erasure, error) {
	e.done.SizeBefore = e.repo.size(ctx)
	e.done.SizeAfter = e.done.SizeBefore
	if dry || len(e.graves) == 0 {
		return e.done, ctx.Err()
	}
	err := e.chunks(ctx)
	if err == nil {
		e.done.Objects, err = objects.Erase(ctx, e.repo.store, e.graves, progress)
	}
	if err == nil {
		e.done.SizeAfter = e.repo.size(ctx)
	}
	return e.done, err
}

// size is how many bytes the store takes; 0 when it lies in no file.
func (r *Repo) size(ctx context.Context) (n int64) {
	if in, ok := objects.As[objects.Sizer](r.store); ok {
		_, n, _ = in.Size(ctx) // it is only told
	}
	return n
}
