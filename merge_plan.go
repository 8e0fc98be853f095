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

// Change is what one history says about a commit: an edit or an annotation.
type Change struct {
	Commit   objects.ID // that says it; zero: what a person decided just now
	Author   string
	Time     time.Time
	Text     string         // of an edit: the words; of an annotation: the reason
	Priority priority.Level // of an annotation

	of   objects.ID
	op   commit.Op
	said *commit.Commit // nil: nobody has said it yet
}

// Conflict is a commit that both histories have edited, or annotated, not alike.
type Conflict struct {
	Commit       objects.ID
	Op           commit.Op // Edit or Annotate
	Ours, Theirs Change
}

// MergeConflictError lists what has to be decided before two histories are merged.
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

// same tells whether two changes of one subject come to the same.
func same(a, b *commit.Commit) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ContentID == b.ContentID && a.Priority == b.Priority || a.Op == commit.Annotate && a.Priority == b.Priority
}

// mergePlan finds out which changes hold after a merge, and which of them have to be
// said again because the order of the merged history alone would not make them.
type mergePlan struct {
	repo     *Repo
	resolve  func(Conflict) (*Change, error)
	restate  []Change
	brought  []Change // what theirs says otherwise than ours, of commits that both have
	resolved []Conflict
	open     []Conflict
	new      map[objects.ID]bool // commits that ours has not
}

func (p *mergePlan) make(ctx context.Context, r *MergeResult) error {
	brought, order := history.LatestChanges(r.Incoming)
	if len(order) == 0 {
		return nil
	}
	p.new = map[objects.ID]bool{}
	for _, c := range r.Incoming {
		p.new[c.ID] = true
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
		if err := p.settle(ctx, s, own[s] != nil, oursLast[s], theirsLast[s], brought[s]); err != nil {
			return err
		}
	}
	if len(p.open) > 0 {
		return &MergeConflictError{Conflicts: p.open}
	}
	return nil
}

// settle decides on one subject. natural is the change that would hold by order.
func (p *mergePlan) settle(ctx context.Context, s history.ChangeKey, both bool, ours, theirs, natural *commit.Commit) error {
	winner := theirs
	if both && !same(ours, theirs) {
		change, err := p.decide(ctx, s, ours, theirs)
		if err != nil || change == nil {
			return err
		}
		if change.Commit != ours.ID && change.Commit != theirs.ID {
			p.restate, p.brought = append(p.restate, *change), append(p.brought, *change)
			return nil
		}
		if change.Commit == ours.ID {
			winner = ours
		}
	}
	change, err := p.change(ctx, winner)
	if err != nil {
		return err
	}
	if !same(winner, ours) && !p.new[s.Target] {
		p.brought = append(p.brought, change)
	}
	if !same(winner, natural) {
		p.restate = append(p.restate, change)
	}
	return nil
}

// decide asks for the end of a conflict; nil when it stays open.
func (p *mergePlan) decide(ctx context.Context, s history.ChangeKey, ours, theirs *commit.Commit) (*Change, error) {
	c := Conflict{Commit: s.Target, Op: s.Op}
	var err error
	if c.Ours, err = p.change(ctx, ours); err != nil {
		return nil, err
	}
	if c.Theirs, err = p.change(ctx, theirs); err != nil {
		return nil, err
	}
	var change *Change
	if p.resolve != nil {
		if change, err = p.resolve(c); err != nil {
			return nil, err
		}
	}
	if change == nil {
		p.open = append(p.open, c)
		return nil, nil
	}
	p.resolved = append(p.resolved, c)
	decided := *change
	decided.of, decided.op = s.Target, s.Op
	return &decided, nil
}

func (p *mergePlan) change(ctx context.Context, c *commit.Commit) (Change, error) {
	if err := commit.Load(ctx, p.repo.store, c); err != nil {
		return Change{}, err
	}
	change := Change{
		Commit: c.ID, Author: c.Author, Time: c.Time, Priority: c.Priority,
		of: c.Target, op: c.Op, said: c,
	}
	if c.Block != nil {
		change.Text = c.Block.String()
	}
	return change, nil
}

// changeDraft is the draft of a change that is said again, or for the first time.
func (b *Branch) changeDraft(ctx context.Context, c *call, change Change) (commit.Draft, error) {
	if change.op == commit.Annotate {
		d := b.noted(c, change.of, change.Priority, change.Text)
		d.Label = commit.Label{}
		return d, nil
	}
	d := b.draft(c, change.op, change.of)
	d.Label = commit.Label{}
	if change.said != nil {
		sameWords(&d, change.said)
	}
	target, err := b.repo.header(ctx, change.of)
	if err != nil {
		return d, err
	}
	if d.Role = target.Role; !change.Commit.IsZero() {
		return d, nil
	}
	block, err := b.repo.blockOf(ctx, target)
	if err != nil {
		return d, err
	}
	if d.Block, err = content.WithText(block, change.Text); err == nil && content.IsEmpty(d.Block) {
		err = ErrEmpty
	}
	return d, err
}
