package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// RefQuery selects branches or tags.
type RefQuery struct {
	Tags         bool   // list tags, not branches
	Prefix       string // of the names, without refs/heads/ or refs/tags/; empty: all
	Limit        int    // the largest number of refs; 0: no limit
	Newest       bool   // sort by the last move, newest first, instead of by name
	Descriptions bool   // read the descriptions of branches too, one by one: see [Branch.Describe]
}

// RefInfo is one branch or tag.
type RefInfo struct {
	Name        string     // without refs/heads/ or refs/tags/
	Tip         objects.ID // the commit that it is at
	Version     uint64     // grows by one with every move
	Updated     time.Time  // time of the last move
	Description string     // of a branch; empty: there is none, or it was not asked for
}

// Refs yields the branches, or the tags. An error is the last element.
func (r *Repo) Refs(ctx context.Context, q RefQuery) iter.Seq2[RefInfo, error] {
	folder := refs.Heads
	if q.Tags {
		folder = refs.Tags
	}
	return func(yield func(RefInfo, error) bool) {
		list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: folder + q.Prefix, Limit: q.Limit, Newest: q.Newest})
		if err != nil {
			yield(RefInfo{}, fmt.Errorf("list %s: %w", folder, err))
			return
		}
		for _, ref := range list {
			info := RefInfo{Name: refs.Name(ref.Name), Tip: ref.Target, Version: ref.Version, Updated: ref.Updated}
			if q.Descriptions && !q.Tags {
				info.Description, err = r.Branch(info.Name).description(ctx)
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Tag makes a tag: a name for a commit that does not move. When a tag of that name exists,
// the error is an [objects.ErrExists].
func (r *Repo) Tag(ctx context.Context, name, rev string) error {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return fmt.Errorf("tag: %w", err)
	}
	return r.createRef(ctx, "tag", refs.Tags, name, id)
}

// DeleteRefs deletes branches, tags and rescue refs, by their full names such as
// refs/tags/v1, in one transaction. Their commits stay in the store, and the ref log says
// where they were.
func (r *Repo) DeleteRefs(ctx context.Context, names []string) error {
	var moves []objects.RefUpdate
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		ref, err := objects.ReadRef(ctx, r.store, name)
		if err == nil && ref.Target.IsZero() {
			err = refs.None(name)
		}
		if err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		moves = append(moves, objects.RefUpdate{Name: name, Old: ref.Target})
	}
	if err := r.moveRefs(ctx, r.defaultOptions(), "delete", moves...); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// createRef creates a ref, which must not exist yet.
func (r *Repo) createRef(ctx context.Context, command, folder, name string, at objects.ID) error {
	if err := refs.Check(name); err != nil {
		return fmt.Errorf("%s %w", command, err)
	}
	err := r.requireNoRef(ctx, folder+name)
	if err == nil {
		err = r.moveRefs(ctx, r.defaultOptions(), command, objects.RefUpdate{Name: folder + name, New: at})
	}
	if errors.As(err, new(*objects.ConflictError)) {
		err = objects.ErrExists
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", command, name, err)
	}
	return nil
}

// requireNoRef returns [objects.ErrExists] when a ref exists. The store's own check is not
// enough: a ref that is already at the new target of an update is no conflict.
func (r *Repo) requireNoRef(ctx context.Context, ref string) error {
	there, err := objects.ReadRef(ctx, r.store, ref)
	if err == nil && !there.Target.IsZero() {
		err = objects.ErrExists
	}
	return err
}

// moveRefs moves refs in one transaction.
func (r *Repo) moveRefs(ctx context.Context, c *callOptions, command string, updates ...objects.RefUpdate) error {
	return r.store.Apply(ctx, objects.Batch{Refs: updates, Note: c.note(ctx, command)})
}
