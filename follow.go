package tract

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// followEvery is how often a store is asked that cannot tell by itself.
const followEvery = 200 * time.Millisecond

// Follow yields how the branch moves from after on: first what has come since
// (after zero: all of it), then each change as it comes, until ctx is done.
// Changes between two looks may come as one; none is lost. It ends with ctx's
// error.
func (b *Branch) Follow(ctx context.Context, after objects.ID) iter.Seq2[BranchChange, error] {
	return func(yield func(BranchChange, error) bool) {
		last := after
		for ref, err := range b.repo.watch(ctx, b.ref()) {
			if err != nil {
				yield(BranchChange{Branch: b.name}, err)
				return
			}
			if ref.Target == last {
				continue
			}
			change, err := b.change(ctx, last, ref.Target)
			if !yield(change, err) || err != nil {
				return
			}
			last = ref.Target
		}
	}
}

func (b *Branch) change(ctx context.Context, from, to objects.ID) (BranchChange, error) {
	c := BranchChange{Type: Appended, Branch: b.name, Old: from, New: to}
	if to.IsZero() {
		c.Type = Deleted
		return c, nil
	}
	if !from.IsZero() {
		on, err := b.repo.isAncestor(ctx, from, to)
		if err != nil {
			return c, err
		}
		if !on {
			c.Type = Moved
			return c, nil
		}
	}
	for added, err := range commit.History(ctx, b.repo.store, []objects.ID{to}, []objects.ID{from}) {
		if err != nil {
			return c, err
		}
		c.Added = append(c.Added, added.ID)
	}
	slices.Reverse(c.Added)
	return c, nil
}

// watch yields a ref as it is and whenever it moves.
func (r *Repo) watch(ctx context.Context, name string) iter.Seq2[objects.Ref, error] {
	if w, ok := objects.As[objects.Watcher](r.store); ok {
		return w.Watch(ctx, name)
	}
	return func(yield func(objects.Ref, error) bool) {
		for {
			ref, err := objects.ReadRef(ctx, r.store, name)
			if !yield(ref, err) || err != nil {
				return
			}
			select {
			case <-ctx.Done():
				yield(objects.Ref{Name: name}, ctx.Err())
				return
			case <-time.After(followEvery):
			}
		}
	}
}
