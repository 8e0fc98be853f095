package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/refs"
)

// Why is what led to one block. What is not known, because no model said the
// block or its request was made elsewhere, is nil.
type Why struct {
	Commit    *commit.Commit   // the block, as Show gives it; for a result of a tool, its call
	Question  *commit.Commit   // the user's words that began the turn
	Reasoning []*commit.Commit // the thoughts that led to it, oldest first
	Ref       objects.ID       // of a call without thoughts of its own: the call that Reasoning belongs to
	Manifest  objects.ID
	Request   *compile.Manifest
	Prompt    *compile.Prompt  // that it was given to
	Shaped    []*commit.Commit // the edits, annotations and summaries that count in Prompt, oldest first
}

// Why says what led to the block of a revision or the id of a tool call: the
// thoughts that it belongs to, and the prompt that it answered. An edit or an
// annotation leads to the block that it speaks of.
func (r *Repo) Why(ctx context.Context, rev string) (*Why, error) {
	w, err := r.why(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("why: %w", err)
	}
	return w, nil
}

func (r *Repo) why(ctx context.Context, rev string) (*Why, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return nil, err
	}
	if c.Op == commit.Edit || c.Op == commit.Annotate {
		if c, err = commit.Read(ctx, r.store, c.Target); err != nil {
			return nil, err
		}
	}
	turn, err := r.turn(ctx, c)
	if err != nil {
		return nil, err
	}
	w := &Why{Commit: c}
	if result, ok := c.Block.(content.ToolResult); ok {
		for i := len(turn) - 1; i >= 0; i-- {
			if call, ok := turn[i].Block.(content.ToolCall); ok && call.CallID == result.CallID {
				w.Commit = turn[i]
				break
			}
		}
	}
	w.attribute(turn)
	all := append([]*commit.Commit{w.Commit}, w.Reasoning...)
	if w.Question != nil {
		all = append(all, w.Question)
	}
	if err := commit.LoadAll(ctx, r.store, all...); err != nil {
		return nil, err
	}
	return w, r.saw(ctx, w)
}

// turn is the blocks of the turn of a commit up to the end of its message, in the
// order of a prompt, the commit among them.
func (r *Repo) turn(ctx context.Context, c *commit.Commit) ([]*commit.Commit, error) {
	var turn []*commit.Commit
	for at, err := range commit.Walk(ctx, r.store, c.ID, 0) {
		if err != nil {
			return nil, err
		}
		if at.Op == commit.Merge && at.ID != c.ID { // what it brought stands behind the line
			if turn, err = commit.Line(ctx, r.store, c.ID); err != nil {
				return nil, err
			}
			slices.Reverse(turn)
			break
		}
		if turn = append(turn, at); at.BeginsTurn() {
			break
		}
	}
	if begin := slices.IndexFunc(turn, (*commit.Commit).BeginsTurn); begin >= 0 {
		turn = turn[:begin+1]
	}
	slices.Reverse(turn)
	turn = slices.DeleteFunc(turn, func(at *commit.Commit) bool { return at.Op != commit.Append && at.ID != c.ID })
	for i, at := range turn {
		if at.ID == c.ID {
			turn[i] = c
		}
	}
	return turn, commit.Load(ctx, r.store, turn...)
}

// attribute finds the thoughts among the blocks of the turn.
func (w *Why) attribute(turn []*commit.Commit) {
	blocks := make([]content.Block, 0, len(turn))
	self := -1
	for i, c := range turn {
		if blocks = append(blocks, c.Block); c.ID == w.Commit.ID {
			self = i
			break
		}
	}
	if len(turn) > 0 && turn[0].BeginsTurn() && self != 0 && w.Commit.Op == commit.Append {
		w.Question = turn[0]
	}
	if w.Commit.Role != content.RoleAssistant || self < 0 {
		return
	}
	calls, thoughts := content.Attribute(blocks)
	if w.Commit.Kind == content.KindToolCall {
		own := calls[len(calls)-1]
		thoughts = own.Thoughts
		if own.Ref >= 0 {
			w.Ref = turn[own.Ref].ID
			for _, c := range calls {
				if c.Call == own.Ref {
					thoughts = c.Thoughts
				}
			}
		}
	}
	for _, i := range thoughts {
		w.Reasoning = append(w.Reasoning, turn[i])
	}
}

// saw fills in the prompt and what shaped it.
func (r *Repo) saw(ctx context.Context, w *Why) (err error) {
	if w.Commit.From == nil || w.Commit.From.Manifest.IsZero() {
		return nil
	}
	w.Manifest = w.Commit.From.Manifest
	if w.Request, err = compile.ReadManifest(ctx, r.store, w.Manifest); err != nil {
		return err
	}
	if w.Prompt, err = compile.Chain(ctx, r.store, w.Request.Head, w.Request.Options); err != nil {
		return err
	}
	last := map[objects.ID]int{} // of the annotations of a commit
	for i, e := range w.Prompt.Entries {
		if e.Op == commit.Annotate {
			last[e.Speaks().Target] = i
		}
	}
	edits := map[objects.ID]bool{}
	for _, e := range w.Prompt.Entries {
		edits[e.Edit()] = true
	}
	for i, e := range w.Prompt.Entries {
		if e.Op == commit.Edit && edits[e.ID] || e.Op == commit.Annotate && last[e.Speaks().Target] == i || e.Op == commit.Compress && e.Sent {
			w.Shaped = append(w.Shaped, e.Speaks().Clone()) // it is filled in
		}
	}
	return commit.LoadAll(ctx, r.store, w.Shaped...)
}

// Absence says why a block was not in a prompt, or that it was.
type Absence struct {
	Commit *commit.Commit // the block
	Reply  *commit.Commit // that the prompt was for; nil: the prompt of a revision
	Sent   bool
	Level  priority.Level
	Why    priority.Why
	By     *commit.Commit // the annotation or the summary that did it, if one did
}

// WhyNot says why the block of a revision is not in the prompt of another: the
// one that a reply was given to, or, for any other commit, the prompt there.
func (r *Repo) WhyNot(ctx context.Context, rev, in string) (*Absence, error) {
	c, err := r.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	reply, err := r.Show(ctx, in)
	if err != nil {
		return nil, err
	}
	a := &Absence{Commit: c}
	var p *compile.Prompt
	if reply.From != nil && !reply.From.Manifest.IsZero() {
		a.Reply = reply
		p, err = r.Saw(ctx, reply.ID.String())
	} else {
		p, err = r.Compile(ctx, reply.ID.String())
	}
	if err != nil {
		return nil, fmt.Errorf("why not: %w", err)
	}
	var entry *compile.Entry
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.ID == c.ID {
			entry = e
		}
		if e.Op == commit.Annotate && e.Speaks().Target == c.ID {
			a.By = e.Speaks().Clone()
		}
	}
	if entry == nil {
		return nil, fmt.Errorf("why not: %w", &refs.UnknownError{Rev: rev, Why: "it is not on the history of " + p.Head.Short() + ": it came later, or on another branch"})
	}
	a.Sent, a.Level, a.Why = entry.Sent, entry.Level, entry.Why()
	if !entry.Hidden().IsZero() {
		if a.By, err = commit.Read(ctx, r.store, entry.Hidden()); err != nil {
			return nil, fmt.Errorf("why not: %w", err)
		}
	} else if a.By != nil && a.By.Priority == priority.Unset {
		a.By = nil
	}
	if a.By == nil {
		return a, nil
	}
	return a, commit.LoadAll(ctx, r.store, a.By)
}
