package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Explanation is what led to one block. What is not known, because no model produced the
// block or its request was made elsewhere, is nil.
type Explanation struct {
	Commit     *commit.Commit   // the block, as Show returns it; for a tool result, its call
	Question   *commit.Commit   // the user message that began the turn
	Reasoning  []*commit.Commit // the reasoning that led to it, oldest first
	Owner      objects.ID       // of a call without reasoning of its own: the call that Reasoning belongs to
	ManifestID objects.ID
	Manifest   *compile.Manifest // of the request
	Prompt     *compile.Prompt   // that the response answered
	Links      []Link            // where a recorded conversation came from
	Shaped     []*commit.Commit  // the edits, annotations and summaries that count in Prompt, oldest first
}

// Link leads from a recorded conversation to a commit of the one that it came from.
type Link struct {
	Name   string         // parent_commit: the tool call that started a sub-agent; forked_from: where another branch was left; continues: the last commit before a compaction
	Commit *commit.Commit // as Show returns it
}

// Why explains what led to the block of a revision or of the id of a tool call: the
// reasoning that it belongs to, and the prompt that it answered. An edit or an annotation
// leads to its block.
func Why(ctx context.Context, repo *tract.Repo, rev string) (*Explanation, error) {
	x, err := explain(ctx, repo, rev)
	if err != nil {
		return nil, fmt.Errorf("why: %w", err)
	}
	return x, nil
}

func explain(ctx context.Context, repo *tract.Repo, rev string) (*Explanation, error) {
	id, err := repo.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	store := repo.Store()
	c, err := commit.Read(ctx, store, id)
	if err != nil {
		return nil, err
	}
	if c.Op == commit.Edit || c.Op == commit.Annotate {
		if c, err = commit.Read(ctx, store, c.Target); err != nil {
			return nil, err
		}
	}
	turn, err := turnOf(ctx, store, c)
	if err != nil {
		return nil, err
	}
	w := &Explanation{Commit: c}
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
	if err := commit.LoadAll(ctx, store, all...); err != nil {
		return nil, err
	}
	if err := w.findLinks(ctx, store); err != nil {
		return nil, err
	}
	return w, w.findPrompt(ctx, store)
}

// findLinks fills in where the conversation of the block came from. A commit that is gone
// is left out.
func (w *Explanation) findLinks(ctx context.Context, r objects.Reader) error {
	if w.Commit.Origin == nil {
		return nil
	}
	for _, name := range []string{history.LinkParent, history.LinkFork, history.LinkContinues} {
		id, err := objects.ParseID(w.Commit.Origin.Original[name])
		if err != nil {
			continue // there is no such link
		}
		c, err := commit.Read(ctx, r, id)
		if errors.Is(err, objects.ErrNotFound) {
			continue
		}
		if err == nil {
			err = commit.LoadAll(ctx, r, c)
		}
		if err != nil {
			return err
		}
		w.Links = append(w.Links, Link{name, c})
	}
	return nil
}

// turnOf returns the blocks of the turn of a commit up to the commit, in the order of a
// prompt.
func turnOf(ctx context.Context, r objects.Reader, c *commit.Commit) ([]*commit.Commit, error) {
	var turn []*commit.Commit
	for at, err := range commit.Walk(ctx, r, c.ID, 0) {
		if err != nil {
			return nil, err
		}
		if at.Op == commit.Merge && at.ID != c.ID { // what it brought comes after the first parent
			if turn, err = commit.Linearize(ctx, r, c.ID); err != nil {
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
	return turn, commit.Load(ctx, r, turn...)
}

// attribute finds the reasoning among the blocks of the turn.
func (w *Explanation) attribute(turn []*commit.Commit) {
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
	calls, reasoning := content.Attribute(blocks)
	if w.Commit.Kind == content.KindToolCall {
		own := calls[len(calls)-1]
		reasoning = own.Reasoning
		if own.Ref >= 0 {
			w.Owner = turn[own.Ref].ID
			for _, c := range calls {
				if c.Call == own.Ref {
					reasoning = c.Reasoning
				}
			}
		}
	}
	for _, i := range reasoning {
		w.Reasoning = append(w.Reasoning, turn[i])
	}
}

// findPrompt fills in the prompt and what shaped it.
func (w *Explanation) findPrompt(ctx context.Context, r objects.Reader) (err error) {
	if w.Commit.Origin == nil || w.Commit.Origin.Manifest.IsZero() {
		return nil
	}
	w.ManifestID = w.Commit.Origin.Manifest
	if w.Manifest, err = compile.ReadManifest(ctx, r, w.ManifestID); err != nil {
		return err
	}
	if w.Prompt, err = compile.Chain(ctx, r, w.Manifest.Head, w.Manifest.Options); err != nil {
		return err
	}
	last := map[objects.ID]int{} // of the annotations of a commit
	for i, e := range w.Prompt.Entries {
		if e.Op == commit.Annotate {
			last[e.Change().Target] = i
		}
	}
	edits := map[objects.ID]bool{}
	for _, e := range w.Prompt.Entries {
		edits[e.EditedBy()] = true
	}
	for i, e := range w.Prompt.Entries {
		if e.Op == commit.Edit && edits[e.ID] || e.Op == commit.Annotate && last[e.Change().Target] == i || e.Op == commit.Compress && e.Sent {
			w.Shaped = append(w.Shaped, e.Change().Clone()) // it is filled in
		}
	}
	return commit.LoadAll(ctx, r, w.Shaped...)
}

// Absence says why a block was not in a prompt, or that it was.
type Absence struct {
	Commit   *commit.Commit // the block
	Response *commit.Commit // that answered the prompt; nil: the prompt is that of a revision
	Sent     bool
	Priority priority.Level
	Why      priority.Why
	By       *commit.Commit // the annotation or the summary that caused it, if one did
}

// WhyNot explains why the block of a revision is not in the prompt of another: the prompt
// that a response answered, or, for any other commit, the prompt compiled there.
func WhyNot(ctx context.Context, repo *tract.Repo, rev, in string) (*Absence, error) {
	c, err := repo.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	at, err := repo.Show(ctx, in)
	if err != nil {
		return nil, err
	}
	a := &Absence{Commit: c}
	var p *compile.Prompt
	if at.Origin != nil && !at.Origin.Manifest.IsZero() {
		a.Response = at
		p, err = Prompt(ctx, repo, at.ID.String())
	} else {
		p, err = repo.Compile(ctx, at.ID.String(), tract.CompileOptions{})
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
		if e.Op == commit.Annotate && e.Change().Target == c.ID {
			a.By = e.Change().Clone()
		}
	}
	if entry == nil {
		return nil, fmt.Errorf("why not: %w", &refs.UnknownError{Rev: rev, Why: "it is not on the history of " + p.Head.Short() + ": it came later, or on another branch"})
	}
	a.Sent, a.Priority, a.Why = entry.Sent, entry.Level, entry.Why()
	if !entry.SummarizedBy().IsZero() {
		if a.By, err = commit.Read(ctx, repo.Store(), entry.SummarizedBy()); err != nil {
			return nil, fmt.Errorf("why not: %w", err)
		}
	} else if a.By != nil && a.By.Priority == priority.Unset {
		a.By = nil
	}
	if a.By == nil {
		return a, nil
	}
	return a, commit.LoadAll(ctx, repo.Store(), a.By)
}
