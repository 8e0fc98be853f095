package tract

import (
	"context"
	"fmt"
	"maps"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Purging says whose words are to be taken away.
type Purging struct {
	Revs    []string     // commits, or ranges A..B of what B has and A has not
	Objects []objects.ID // objects with words, whoever has them: contents, labels, the description of a branch, definitions of tools
	Why     string       // what tombstones say; never the words themselves
	Dry     bool         // only say what would go

	Progress func(done, total int64)
}

// PurgeResult is what a Purge took away, or would.
type PurgeResult struct {
	Erasure
	Commits []*commit.Commit // that were named and had words, with the blocks that they had; and those whose words were named
	Shared  []*commit.Commit // other commits that say the same: their words are the same object, and go too
	Edits   []*commit.Commit // edits of them, which have words of their own, and stay
	Others  []objects.ID     // objects that were named and are the words of no commit
	Copies  []*commit.Commit // what a model was shown to write a summary, which has the words and goes whole; on no branch
}

// Purge takes the words and the labels of commits away, whatever they are: from every
// branch that has them and from every file of the store. The commits stay, and every
// hash still holds. An edit has words of its own: it goes when it is named. It cannot
// be undone, and reaches no copy of the store, no remote and no provider. Commits that
// were purged before are passed over, so that it is safe to repeat.
func (r *Repo) Purge(ctx context.Context, p Purging, opts ...Option) (*PurgeResult, error) {
	c, err := r.call(opts)
	if err != nil {
		return nil, err
	}
	done, err := r.purge(ctx, c, p)
	if err != nil {
		return nil, fmt.Errorf("purge: %w", err)
	}
	return done, nil
}

func (r *Repo) purge(ctx context.Context, c *call, p Purging) (*PurgeResult, error) {
	named, err := r.named(ctx, p.Revs)
	if err != nil {
		return nil, err
	}
	if err := commit.LoadAll(ctx, r.store, named...); err != nil {
		return nil, err
	}
	done := &PurgeResult{}
	e, err := r.newErasing(ctx, c, p.Why)
	if err != nil {
		return nil, err
	}
	var going []*commit.Commit // done.Commits keep their blocks, so that they can be shown
	for _, at := range named {
		if at.Block != nil && at.Erased == nil || !at.Words.IsZero() {
			e.label(at)
			own := *at
			done.Commits, going = append(done.Commits, at), append(going, &own)
		}
	}
	if len(named) == 1 && named[0].Content.IsZero() && named[0].Label.IsZero() {
		return nil, &refs.UnknownError{Rev: p.Revs[0], Why: fmt.Sprintf("the %s has no words", named[0].Op)}
	}
	if _, err := e.contents(ctx, going); err != nil {
		return nil, err
	}
	for _, id := range p.Objects {
		if err := e.object(ctx, id); err != nil {
			return nil, err
		}
	}
	done.Copies = e.copies
	if err := r.sharing(ctx, e, p.Objects, done); err != nil {
		return nil, err
	}
	done.Erasure, err = e.erase(ctx, p.Dry, p.Progress)
	return done, err
}

// named lists the commits of revisions and ranges, each once.
func (r *Repo) named(ctx context.Context, revs []string) (list []*commit.Commit, err error) {
	seen := map[objects.ID]bool{}
	add := func(c *commit.Commit) {
		if own := *c; !seen[c.ID] {
			seen[c.ID], list = true, append(list, &own)
		}
	}
	for _, rev := range revs {
		from, to, err := r.resolver().Range(ctx, rev)
		if err != nil {
			return nil, err
		}
		if from.IsZero() {
			c, err := r.header(ctx, to)
			if err != nil {
				return nil, err
			}
			add(c)
			continue
		}
		for c, err := range commit.History(ctx, r.store, []objects.ID{to}, []objects.ID{from}) {
			if err != nil {
				return nil, err
			}
			add(c)
		}
	}
	return list, nil
}

// sharing finds the other commits that are concerned, and those that have objects which
// were named.
func (r *Repo) sharing(ctx context.Context, e *erasing, listed []objects.ID, done *PurgeResult) error {
	named := map[objects.ID]bool{}
	for _, c := range done.Commits {
		named[c.ID] = true
	}
	if len(listed) > 0 {
		if err := r.having(ctx, e, listed, named, done); err != nil {
			return err
		}
	}
	for c, err := range r.ever(ctx) {
		switch {
		case err != nil:
			return err
		case named[c.ID]:
		case e.has[c.Content], !c.Label.IsZero() && e.has[c.Label]:
			done.Shared = append(done.Shared, c)
		case c.Op == commit.Edit && named[c.Target]:
			done.Edits = append(done.Edits, c)
		}
	}
	return nil
}

// having adds the commits that have objects of a list to those that were named, and
// notes which objects are the words of none.
func (r *Repo) having(ctx context.Context, e *erasing, listed []objects.ID, named map[objects.ID]bool, done *PurgeResult) error {
	alone := map[objects.ID]bool{}
	for _, id := range listed {
		if e.has[id] {
			alone[id] = true
		}
	}
	wanted := maps.Clone(alone)
	for c, err := range r.ever(ctx) {
		if err != nil {
			return err
		}
		if (wanted[c.Content] || wanted[c.Label]) && !named[c.ID] {
			named[c.ID], done.Commits = true, append(done.Commits, c)
		}
		delete(alone, c.Content)
		delete(alone, c.Label)
	}
	for _, c := range done.Copies {
		delete(alone, c.Content)
	}
	for _, id := range listed {
		if alone[id] {
			done.Others = append(done.Others, id)
			delete(alone, id)
		}
	}
	return nil
}
