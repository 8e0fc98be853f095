package tract

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// MergeOptions say how to merge. The zero value moves the branch forward where that is
// enough, and else puts what the other history says after what this one says.
type MergeOptions struct {
	FastForwardOnly bool       // refuse what needs a merge commit: [ErrNotFastForward]
	NoFastForward   bool       // make a merge commit although moving forward is enough
	AllowUnrelated  bool       // allow histories that share no commit
	Squash          bool       // commit what is brought again, as it reads there, without a second parent
	NoMove          bool       // write the commits and do not move the branch: MergeResult.Tip is where it would be
	DryRun          bool       // write nothing
	Summary         string     // stands in the prompt for what is brought
	Summarize       llm.Client // asked for a summary when there is something to sum up
	Ask             AskOptions // how Summarize is asked; Tools, Budget, Key, NoStream and OnEvent are not used
	Author          string     // of the commits; empty: the author of the Repo
	Label           string     // on the merge: a line for people, never sent

	// Resolve ends a conflict: it gives c.Ours, c.Theirs, or a change with a Text of
	// its own. Nil, and a nil change, leave the conflict as it is.
	Resolve func(c Conflict) (*Change, error)
}

// MergeKind says what a merge came to.
type MergeKind string

// What a merge comes to.
const (
	UpToDate    MergeKind = "up-to-date"   // there is nothing that the branch has not
	FastForward MergeKind = "fast-forward" // the branch moved, and nothing was committed
	Merged      MergeKind = "merge"        // a commit with two parents
	Squashed    MergeKind = "squash"       // copies
)

// MergeResult is what a merge did, or would do.
type MergeResult struct {
	Kind      MergeKind
	Base      objects.ID // the last commit that both have; zero: none
	Ours      objects.ID // the branch as it was; zero: without commits
	Theirs    objects.ID
	Tip       objects.ID       // the branch as it is, or would be; zero for a dry run that would commit
	Incoming  []*commit.Commit // what theirs has and ours has not, as Show gives it, oldest first
	Commits   []objects.ID     // that were made
	Conflicts []Conflict       // that were resolved
}

// ErrNotFastForward says that a branch cannot be moved forward to another: both have
// commits of their own.
var ErrNotFastForward = errors.New("both have commits of their own")

// ErrUnrelated says that two histories share no commit.
var ErrUnrelated = errors.New("the histories share no commit")

// ToolLoopError says that a tool loop is open where a merge would cut it.
type ToolLoopError struct {
	Operation string
	Where     string   // a branch or a revision
	Calls     []string // that wait for a result; none: the model has not answered the last result
}

// Error names the calls.
func (e *ToolLoopError) Error() string {
	if len(e.Calls) == 0 {
		return fmt.Sprintf("%s: %s is inside a tool loop: the model has not answered the last result", e.Operation, e.Where)
	}
	return fmt.Sprintf("%s: %s is inside a tool loop: calls wait for a result: %s", e.Operation, e.Where, strings.Join(e.Calls, ", "))
}

// Merge brings what another history has into the branch. A commit that both have
// edited, or annotated, is a conflict, and those that o.Resolve does not end are a
// *[MergeConflictError]. It insists on the tip it saw: *[ConflictError].
func (b *Branch) Merge(ctx context.Context, rev string, o MergeOptions) (*MergeResult, error) {
	c, err := b.repo.asking(o.Ask)
	if err != nil {
		return nil, err
	}
	c.by(o.Author)
	c.key, c.label.Text = commit.Key{}, o.Label
	r := &MergeResult{}
	if r.Ours, err = b.Tip(ctx); err != nil {
		return nil, err
	}
	if r.Theirs, err = b.resolver().Resolve(ctx, rev); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	if err := b.merge(ctx, c, o, r, rev); err != nil {
		if errors.As(err, new(*objects.ConflictError)) {
			return nil, b.conflict("merge", err)
		}
		return nil, fmt.Errorf("merge %s into branch %s: %w", rev, b.name, err)
	}
	return r, nil
}

func (b *Branch) merge(ctx context.Context, c *call, m MergeOptions, r *MergeResult, rev string) (err error) {
	store := b.repo.store
	if r.Ours.IsZero() {
		if r.Incoming, err = commit.Linearize(ctx, store, r.Theirs); err != nil {
			return err
		}
	} else {
		if r.Base, err = commit.MergeBase(ctx, store, r.Ours, r.Theirs); err != nil {
			return err
		}
		if r.Incoming, err = commit.IncomingCommits(ctx, store, r.Ours, r.Theirs); err != nil {
			return err
		}
	}
	forward := r.Base == r.Ours
	switch {
	case r.Base == r.Theirs:
		r.Kind, r.Tip = UpToDate, r.Ours
		return nil
	case forward && (r.Ours.IsZero() || !m.NoFastForward && !m.Squash && m.Summary == "" && m.Summarize == nil):
		return b.forward(ctx, c, m, r)
	case m.FastForwardOnly:
		return ErrNotFastForward
	case r.Base.IsZero() && !m.AllowUnrelated:
		return ErrUnrelated
	}
	if err := b.repo.closed(ctx, "branch "+b.name, r.Ours); err != nil {
		return err
	}
	if err := b.repo.closed(ctx, rev, r.Theirs); err != nil {
		return err
	}
	return b.join(ctx, c, m, r)
}

// forward moves the branch to the other history.
func (b *Branch) forward(ctx context.Context, c *call, m MergeOptions, r *MergeResult) error {
	r.Kind, r.Tip = FastForward, r.Theirs
	if err := commit.LoadAll(ctx, b.repo.store, r.Incoming...); err != nil || m.DryRun || m.NoMove {
		return err
	}
	return b.repo.move(ctx, c, "merge", objects.RefUpdate{Name: b.ref(), Old: r.Ours, New: r.Theirs})
}

// closed refuses a history that ends inside a tool loop: what came after it there
// would not be an answer to it.
func (r *Repo) closed(ctx context.Context, where string, tip objects.ID) error {
	used, err := history.UsedTools(ctx, r.store, tip)
	if err != nil || !used {
		return err
	}
	p, err := compile.Chain(ctx, r.store, tip, compile.Options{})
	if err != nil {
		return err
	}
	e := &ToolLoopError{Operation: "merge", Where: where}
	for _, pending := range p.Pending {
		e.Calls = append(e.Calls, pending.Call.CallID)
	}
	if n := len(p.Messages); len(e.Calls) > 0 || n > 0 && p.Messages[n-1].Role == content.RoleTool {
		return e
	}
	return nil
}

// join writes what joins two histories that went apart.
func (b *Branch) join(ctx context.Context, c *call, m MergeOptions, r *MergeResult) error {
	store := b.repo.store
	tip, err := b.repo.header(ctx, r.Ours)
	if err != nil {
		return err
	}
	if err := commit.LoadAll(ctx, store, r.Incoming...); err != nil {
		return err
	}
	p := &mergePlan{repo: b.repo, resolve: m.Resolve}
	if err := p.make(ctx, r); err != nil {
		return err
	}
	r.Conflicts = p.resolved
	r.Kind = Merged
	changes := p.restate
	if m.Squash {
		r.Kind, changes = Squashed, p.brought
	}
	if m.DryRun {
		m.Summarize = nil // nothing is asked for nothing
	}
	drafts, more, err := b.joining(ctx, c, m, r)
	if err != nil {
		return err
	}
	for _, change := range changes {
		d, err := b.changeDraft(ctx, c, change)
		if err != nil {
			return err
		}
		drafts = append(drafts, d)
	}
	if last := len(drafts) - 1; m.Squash && last >= 0 && drafts[last].Label.IsZero() {
		drafts[last].Label = c.label
	}
	if m.DryRun {
		return nil
	}
	commits, put, err := c.commits(tip, drafts...)
	if err != nil || len(commits) == 0 {
		r.Tip = r.Ours
		return err
	}
	batch := b.batch(c.note(ctx, "merge"), r.Ours, commits, append(more, put...), &r.Commits)
	if r.Tip = commits[len(commits)-1].ID; m.NoMove {
		batch.Refs = nil
	}
	return b.apply(ctx, batch)
}

// joining is the drafts of the merge itself: a merge commit, or for a squash the
// blocks, and a summary behind the one, or in place of the others. put is what has
// to be put besides.
func (b *Branch) joining(ctx context.Context, c *call, m MergeOptions, r *MergeResult) (drafts []commit.Draft, put []objects.Object, err error) {
	summary, put, err := b.summary(ctx, c, m, r)
	switch {
	case err != nil:
		return nil, nil, err
	case m.Squash && summary != nil:
		summary.Op, summary.First, summary.Target, summary.Label = commit.Append, objects.ID{}, objects.ID{}, c.label
		return []commit.Draft{*summary}, put, nil
	case m.Squash:
		drafts, err = b.repo.flat(ctx, r)
		return drafts, nil, err
	}
	d := b.draft(c, commit.Merge, objects.ID{})
	if d.SecondParent, err = b.repo.header(ctx, r.Theirs); err != nil {
		return nil, nil, err
	}
	drafts = []commit.Draft{d}
	if summary != nil {
		drafts = append(drafts, *summary)
	}
	return drafts, put, nil
}
