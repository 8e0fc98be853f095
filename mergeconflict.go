package tract

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// How a merge treats edits and annotations. Both are commits that change another commit, and
// the last one in the order of the history is in effect. A merge appends the incoming commits
// after ours, so that an incoming change would always win. For each block that incoming
// commits change, mergePlan therefore compares three changes: the last one of ours, the last
// one of theirs, and the one that comes last in the merged order. When both histories have
// changed the block differently since the merge base, it is a conflict, which Resolve or the
// caller decides. When the winner is not the change that comes last in the merged order, the
// merge commits the winner again.

// Change is an edit or an annotation of a commit on one history.
type Change struct {
	Commit   objects.ID // the commit of the change; zero: Resolve made it
	Author   string
	Time     time.Time
	Text     string         // of an edit: the new text; of an annotation: the reason
	Priority priority.Level // of an annotation

	of     objects.ID
	op     commit.Op
	source *commit.Commit // nil: Resolve made the change
}

// Conflict is a commit that both histories have edited, or annotated, differently.
type Conflict struct {
	Commit       objects.ID
	Op           commit.Op // Edit or Annotate
	Ours, Theirs Change
}

// MergeConflictError lists the conflicts of a merge that have to be resolved.
type MergeConflictError struct{ Conflicts []Conflict }

// Error names the first commit.
func (e *MergeConflictError) Error() string {
	c := e.Conflicts[0]
	text := fmt.Sprintf("both have changed commit %s (%s)", c.Commit.Short(), c.Op)
	if n := len(e.Conflicts) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}

// haveSameEffect reports whether two changes of one block have the same effect.
func haveSameEffect(a, b *commit.Commit) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ContentID == b.ContentID && a.Priority == b.Priority || a.Op == commit.Annotate && a.Priority == b.Priority
}

// mergePlan determines which edits and annotations are in effect after a merge. The last
// change of a block in the order of the merged history is in effect; where that is not the
// right one, the plan has the right one in restate, to be committed again.
type mergePlan struct {
	repo               *Repo
	resolve            func(Conflict) (*Change, error)
	restate            []Change
	sharedBlockChanges []Change // changes by the other history, or by resolutions, of blocks that both have: what a squash commits
	resolved           []Conflict
	unresolved         []Conflict
	incoming           map[objects.ID]bool // commits that ours does not have
}

// planChanges decides which change of each block is in effect after the merge, and collects the
// conflicts in the plan. Unresolved conflicts are a *MergeConflictError. It makes no commits.
func (p *mergePlan) planChanges(ctx context.Context, r *MergeResult) error {
	brought, order := history.LatestChanges(r.Incoming)
	if len(order) == 0 {
		return nil
	}
	p.incoming = map[objects.ID]bool{}
	for _, c := range r.Incoming {
		p.incoming[c.ID] = true
	}
	ours, err := commit.Linearize(ctx, p.repo.store, r.Ours)
	if err != nil {
		return err
	}
	theirs, err := commit.Linearize(ctx, p.repo.store, r.Theirs)
	if err != nil {
		return err
	}
	ownLine, err := commit.IncomingCommits(ctx, p.repo.store, r.Theirs, r.Ours)
	if err != nil {
		return err
	}
	own, _ := history.LatestChanges(ownLine)
	oursLast, _ := history.LatestChanges(ours)
	theirsLast, _ := history.LatestChanges(theirs)
	for _, s := range order {
		if err := p.mergeChange(ctx, s, own[s] != nil, oursLast[s], theirsLast[s], brought[s]); err != nil {
			return err
		}
	}
	if len(p.unresolved) > 0 {
		return &MergeConflictError{Conflicts: p.unresolved}
	}
	return nil
}

// mergeChange decides which change of a block is in effect after the merge. bothChanged
// tells that both histories changed the block since the merge base. inEffect is the
// change that is in effect without being restated: the last one in the order of the merged
// history.
func (p *mergePlan) mergeChange(ctx context.Context, key history.ChangeKey, bothChanged bool, ours, theirs, inEffect *commit.Commit) error {
	winner := theirs
	if bothChanged && !haveSameEffect(ours, theirs) {
		change, err := p.resolveOrRecordConflict(ctx, key, ours, theirs)
		if err != nil || change == nil {
			return err
		}
		if change.Commit != ours.ID && change.Commit != theirs.ID {
			p.restate, p.sharedBlockChanges = append(p.restate, *change), append(p.sharedBlockChanges, *change)
			return nil
		}
		if change.Commit == ours.ID {
			winner = ours
		}
	}
	change, err := p.exportChange(ctx, winner)
	if err != nil {
		return err
	}
	if !haveSameEffect(winner, ours) && !p.incoming[key.Target] {
		p.sharedBlockChanges = append(p.sharedBlockChanges, change)
	}
	if !haveSameEffect(winner, inEffect) {
		p.restate = append(p.restate, change)
	}
	return nil
}

// resolveOrRecordConflict calls Resolve and returns its change. When the conflict stays, it is
// added to p.unresolved, and the change is nil without an error.
func (p *mergePlan) resolveOrRecordConflict(ctx context.Context, key history.ChangeKey, ours, theirs *commit.Commit) (*Change, error) {
	c := Conflict{Commit: key.Target, Op: key.Op}
	var err error
	if c.Ours, err = p.exportChange(ctx, ours); err != nil {
		return nil, err
	}
	if c.Theirs, err = p.exportChange(ctx, theirs); err != nil {
		return nil, err
	}
	var change *Change
	if p.resolve != nil {
		if change, err = p.resolve(c); err != nil {
			return nil, err
		}
	}
	if change == nil {
		p.unresolved = append(p.unresolved, c)
		return nil, nil
	}
	p.resolved = append(p.resolved, c)
	decided := *change
	decided.of, decided.op = key.Target, key.Op
	return &decided, nil
}

// exportChange returns the exported form of an edit or an annotation.
func (p *mergePlan) exportChange(ctx context.Context, c *commit.Commit) (Change, error) {
	if err := commit.Load(ctx, p.repo.store, c); err != nil {
		return Change{}, err
	}
	change := Change{
		Commit: c.ID, Author: c.Author, Time: c.Time, Priority: c.Priority,
		of: c.Target, op: c.Op, source: c,
	}
	if c.Block != nil {
		change.Text = c.Block.String()
	}
	return change, nil
}

// changeDraft returns the draft of a change: one that is committed again, with its author,
// or a new one that Resolve made.
func (b *Branch) changeDraft(ctx context.Context, c *callOptions, change Change) (d commit.Draft, err error) {
	if change.op == commit.Annotate {
		d = b.annotationDraft(c, change.of, change.Priority, change.Text)
	} else {
		d = b.newChangeDraft(c, change.op, change.of)
	}
	d.Label = commit.Label{}
	if change.source != nil {
		d.Author = change.source.Author
	}
	if change.op == commit.Annotate {
		return d, nil
	}
	target, err := b.repo.header(ctx, change.of)
	if err != nil {
		return d, err
	}
	d.Role = target.Role
	if change.source != nil {
		copyBlockOrTombstone(&d, change.source)
		return d, nil
	}
	if err := commit.Load(ctx, b.repo.store, target); err != nil {
		return d, err
	}
	if d.Block, err = content.WithText(target.Block, change.Text); err == nil && content.IsEmpty(d.Block) {
		err = ErrEmpty
	}
	return d, err
}
