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
	Commits []*commit.Commit // oldest first, as Show returns them
	Damage  error            // of commits that cannot be read: see [commit.DamagedError]
}

// RescueOptions are the options of [Branch.TakeRescue].
type RescueOptions struct {
	Anywhere bool // also on a branch that is no longer at the commit that the response answered
}

// IncompleteError is the error for an incomplete response. The part that arrived is kept.
type IncompleteError struct {
	Response *Response // the part that arrived: whole blocks, and the last text or reasoning as far as it came
	Rescued  string    // the rescue ref that the response is kept under; may be empty
	Cause    error
}

// Error describes the cause, and names the rescue ref.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("generate: %v; the response is kept under %s", e.Cause, e.Rescued)
}

// Unwrap returns the cause.
func (e *IncompleteError) Unwrap() error { return e.Cause }

// MisplacedError is the error for a rescued response whose branch is no longer at the
// commit that it answered. Nothing was changed.
type MisplacedError struct {
	Rescued  string     // the rescue ref of the response
	Branch   string     // the branch to commit the response to
	Answered objects.ID // the commit that the response answered
	Tip      objects.ID // of the branch
}

// Error names the response, the branch and both commits.
func (e *MisplacedError) Error() string {
	return fmt.Sprintf("%s answered %s, and branch %s is at %s", strings.TrimPrefix(e.Rescued, refs.Rescued), shortIDOrNothing(e.Answered), e.Branch, shortIDOrNothing(e.Tip))
}

// rescueTime is the time limit for writing a response to a rescue ref, which does not end
// with the caller's context.
const rescueTime = 10 * time.Second

// rescueIncomplete keeps an incomplete response under a rescue ref and returns an
// *[IncompleteError], or an *[UnsavedError] when that fails.
func (b *Branch) rescueIncomplete(ctx context.Context, r *Response, batch objects.Batch, cause error) error {
	rescued, err := b.writeRescue(ctx, batch)
	if err != nil {
		return &UnsavedError{Response: r, Cause: errors.Join(cause, err)}
	}
	return &IncompleteError{Response: r, Rescued: rescued, Cause: cause}
}

// writeRescue puts the objects of a batch under a rescue ref, even when ctx is done.
func (b *Branch) writeRescue(ctx context.Context, batch objects.Batch) (ref string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueTime)
	defer cancel()
	base := refs.Rescued + b.name + "/" + b.repo.clock().UTC().Format(history.RescueTime)
	to := batch.Refs[0].New
	for n := 1; n < 100; n++ {
		ref = base
		if n > 1 {
			ref = fmt.Sprintf("%s-%d", base, n)
		}
		batch.Refs = []objects.RefUpdate{{Name: ref, New: to}}
		err = b.repo.store.Apply(ctx, batch)
		if taken := (*objects.ConflictError)(nil); !errors.As(err, &taken) {
			break
		}
	}
	return ref, err
}

// Rescues returns the responses that could not be committed, oldest first.
func (r *Repo) Rescues(ctx context.Context) ([]Rescue, error) {
	list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: refs.Rescued})
	if err != nil {
		return nil, fmt.Errorf("list rescued responses: %w", err)
	}
	var all []Rescue
	for _, ref := range list {
		name := strings.TrimPrefix(ref.Name, refs.Rescued)
		branch := name[:max(strings.LastIndexByte(name, '/'), 0)]
		rescue := Rescue{Name: name, Branch: branch, Tip: ref.Target, Time: ref.Updated}
		rescue.Commits, err = r.rescuedCommits(ctx, ref)
		if errors.As(err, new(*commit.DamagedError)) || history.IsDamaged(err) {
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

// rescuedCommits returns the commits of a rescued response, oldest first, as Show returns them;
// with a *[commit.DamagedError] when one is damaged.
func (r *Repo) rescuedCommits(ctx context.Context, ref objects.Ref) ([]*commit.Commit, error) {
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

// rescueRef returns the rescue ref of a name.
func (r *Repo) rescueRef(ctx context.Context, name string) (objects.Ref, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "refs/"), "rescued/")
	ref, err := objects.ReadRef(ctx, r.store, refs.Rescued+name)
	if err == nil && ref.Target.IsZero() {
		err = refs.None(refs.Rescued + name)
	}
	return ref, err
}

// TakeRescue commits a rescued response to the branch and removes its rescue ref, in one
// transaction. The response has to follow the commit that it answered: a branch without
// commits begins there, and when the tip of the branch is another commit, the error is a
// *[MisplacedError], unless Anywhere is set.
func (b *Branch) TakeRescue(ctx context.Context, name string, o RescueOptions) ([]objects.ID, error) {
	c := b.repo.defaultOptions()
	if err := refs.Check(b.name); err != nil {
		return nil, fmt.Errorf("rescue take: branch %w", err)
	}
	ref, err := b.repo.rescueRef(ctx, name)
	if err != nil {
		return nil, err
	}
	reply, err := b.repo.rescuedCommits(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ids []objects.ID
	note := c.note(ctx, "rescue take")
	err = b.repo.store.Update(ctx, b.ref(), func(at objects.ID) (objects.Batch, error) {
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
			drafts := make([]commit.Draft, len(reply))
			for i, one := range reply {
				drafts[i] = draftOf(one)
			}
			if commits, put, err = c.maskAndBuild(tip, drafts...); err != nil {
				return objects.Batch{}, err
			}
		}
		ids = commitIDs(commits)
		batch := b.newBatch(note, at, commits, put)
		batch.Refs = append(batch.Refs, objects.RefUpdate{Name: ref.Name, Old: ref.Target})
		batch.Copies = true
		return batch, nil
	})
	if err != nil {
		return nil, fmt.Errorf("rescue take: %w", err)
	}
	return ids, nil
}
