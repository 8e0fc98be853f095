package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// Rescue is a response that could not be committed to its branch.
type Rescue struct {
	Name    string // BRANCH/TIME
	Branch  string
	Tip     objects.ID
	Time    time.Time
	Commits []*commit.Commit // oldest first, as Show gives them
	Damage  error            // they cannot be read, or not whole: see [commit.DamagedError]
}

// Rescues lists the responses that could not be committed, oldest first.
func (r *Repo) Rescues(ctx context.Context) ([]Rescue, error) {
	list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: refs.Rescued})
	if err != nil {
		return nil, fmt.Errorf("list rescued replies: %w", err)
	}
	var all []Rescue
	for _, ref := range list {
		name := strings.TrimPrefix(ref.Name, refs.Rescued)
		branch := name[:max(strings.LastIndexByte(name, '/'), 0)]
		rescue := Rescue{Name: name, Branch: branch, Tip: ref.Target, Time: ref.Updated}
		rescue.Commits, err = r.rescued(ctx, ref)
		if errors.As(err, new(*commit.DamagedError)) || history.IsDamage(err) {
			rescue.Damage, err = err, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, rescue)
	}
	slices.SortStableFunc(all, func(a, b Rescue) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// rescued returns the commits of a rescued response, oldest first, as Show gives them; with
// a *[commit.DamagedError] when one is damaged.
func (r *Repo) rescued(ctx context.Context, ref objects.Ref) ([]*commit.Commit, error) {
	var reply []*commit.Commit
	for c, err := range commit.Walk(ctx, r.store, ref.Target, 0) {
		if err != nil {
			return nil, fmt.Errorf("rescue %s: %w", refs.Name(ref.Name), err)
		}
		if len(reply) > 0 && c.OriginID != reply[0].OriginID {
			break
		}
		reply = append(reply, c)
	}
	slices.Reverse(reply)
	return reply, history.LoadAll(ctx, r.store, reply)
}

func (r *Repo) rescueRef(ctx context.Context, name string) (objects.Ref, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "refs/"), "rescued/")
	ref, err := objects.ReadRef(ctx, r.store, refs.Rescued+name)
	if err == nil && ref.Target.IsZero() {
		err = refs.None(refs.Rescued + name)
	}
	return ref, err
}

// TakeRescue commits a rescued response to the branch and removes its rescue ref, in
// one transaction. The response has to follow the commit that it answered: a branch
// without commits begins there, and one whose tip is another commit is a
// *[MisplacedError], unless Anywhere is set.
func (b *Branch) TakeRescue(ctx context.Context, name string, o RescueOptions) ([]objects.ID, error) {
	c := b.repo.call()
	if err := refs.Check(b.name); err != nil {
		return nil, fmt.Errorf("rescue take: branch %w", err)
	}
	ref, err := b.repo.rescueRef(ctx, name)
	if err != nil {
		return nil, err
	}
	reply, err := b.repo.rescued(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ids []objects.ID
	note := c.note(ctx, "rescue take")
	err = b.repo.store.Update(ctx, b.ref(), func(at objects.ID) (objects.Batch, error) {
		ids = nil
		commits, put := reply, []objects.Object(nil)
		switch answered := reply[0].Parent(); {
		case answered == at || at.IsZero() && !o.Anywhere:
		case !o.Anywhere:
			return objects.Batch{}, &MisplacedError{Rescued: ref.Name, Branch: b.name, Answered: answered, Tip: at}
		default:
			tip, err := b.repo.header(ctx, at)
			if err != nil {
				return objects.Batch{}, err
			}
			if commits, put, err = c.commits(tip, again(reply)...); err != nil {
				return objects.Batch{}, err
			}
		}
		batch := b.batch(note, at, commits, put, &ids)
		batch.Refs = append(batch.Refs, objects.RefUpdate{Name: ref.Name, Old: ref.Target})
		batch.Copies = true
		return batch, nil
	})
	if err != nil {
		return nil, fmt.Errorf("rescue take: %w", err)
	}
	return ids, nil
}

// again is drafts of commits as they are, for another parent.
func again(commits []*commit.Commit) []commit.Draft {
	drafts := make([]commit.Draft, len(commits))
	for i, c := range commits {
		drafts[i] = commit.Draft{
			Op: c.Op, Role: c.Role, Index: c.Index, Target: c.Target, First: c.First, Scope: c.Scope, Priority: c.Priority,
			Time: c.Time, Author: c.Author, Key: c.Key, Origin: c.Origin, Label: c.Label,
		}
		sameWords(&drafts[i], c)
	}
	return drafts
}

// sameWords gives a draft the block of a commit; when its words were erased, theirs
// stay so.
func sameWords(d *commit.Draft, c *commit.Commit) {
	if d.Block, d.CopyPurged = c.Block, nil; c.Tombstone != nil {
		d.Block, d.CopyPurged = nil, c
	}
}
