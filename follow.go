package tract

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// ChangeType is the kind of a branch's move.
type ChangeType string

// The types of changes.
const (
	Appended ChangeType = "append" // the old tip is an ancestor of the new one
	Moved    ChangeType = "reset"  // the new tip does not descend from the old one
	Deleted  ChangeType = "delete"
)

// BranchChange is a move of a branch; several quick moves may be one change.
type BranchChange struct {
	Type   ChangeType
	Branch string
	Old    objects.ID   // zero: no commits before, as far as the caller has seen
	New    objects.ID   // zero: the branch is deleted
	Added  []objects.ID // of an append: the new commits, oldest first
}

// The polling interval for a store that cannot watch refs grows from followFirst, when the ref
// has just moved, to followLast.
const (
	followFirst = 10 * time.Millisecond
	followLast  = 500 * time.Millisecond
)

// Follow yields the moves of the branch: first one from the commit after to the present tip
// (the zero id stands for the beginning of the history), then each further move, until ctx
// is done. Moves in quick succession may be yielded as one; none is lost. The last element
// has the error of ctx.
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
			change, err := b.describeMove(ctx, last, ref.Target)
			if !yield(change, err) || err != nil {
				return
			}
			last = ref.Target
		}
	}
}

// describeMove describes the move of the branch between two commits.
func (b *Branch) describeMove(ctx context.Context, from, to objects.ID) (BranchChange, error) {
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

// watch yields the present state of a ref, and then its state after each move. Without a
// store that can watch refs it polls, and yields unchanged states too.
func (r *Repo) watch(ctx context.Context, name string) iter.Seq2[objects.Ref, error] {
	if w, ok := objects.As[objects.Watcher](r.store); ok {
		return w.Watch(ctx, name)
	}
	return func(yield func(objects.Ref, error) bool) {
		version := uint64(0)
		for wait := followFirst; ; wait = min(wait*3/2, followLast) {
			ref, err := objects.ReadRef(ctx, r.store, name)
			if !yield(ref, err) || err != nil {
				return
			}
			if ref.Version != version {
				version, wait = ref.Version, followFirst
			}
			select {
			case <-ctx.Done():
				yield(objects.Ref{Name: name}, ctx.Err())
				return
			case <-time.After(wait):
			}
		}
	}
}
