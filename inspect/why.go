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

// Explanation describes the reasoning and the request that led to one block. A field is zero when
// it is not known, because no model produced the block or its request was made elsewhere.
type Explanation struct {
	Commit     *commit.Commit   // the block, as Show returns it; for a tool result, its call
	Question   *commit.Commit   // the user message that began the turn
	Reasoning  []*commit.Commit // the reasoning that led to the block, oldest first
	Owner      objects.ID       // of a call without reasoning of its own: the call that Reasoning belongs to
	ManifestID objects.ID
	Manifest   *compile.Manifest // of the request
	Prompt     *compile.Prompt   // the prompt that the response answered
	Links      []Link            // commits of the conversation that a recorded conversation came from
	Shaped     []*commit.Commit  // the edits, annotations and summaries that are in effect in Prompt, oldest first
}

// Link is a link from a recorded conversation to a commit of the conversation that it came from.
type Link struct {
	Name   string         // parent_commit: the tool call that started a sub-agent; forked_from: the commit of another branch at which it begins; continues: the last commit before a compaction
	Commit *commit.Commit // as Show returns it
}

// Why explains the block of a revision, which may be the id of a tool call: it returns the
// reasoning that led to the block, and the prompt that the response answered. For an edit or an
// annotation it explains the block that was changed.
func Why(ctx context.Context, repo *tract.Repo, rev string) (*Explanation, error) {
	x, err := explain(ctx, repo, rev)
	if err != nil {
		return nil, fmt.Errorf("why: %w", err)
	}
	return x, nil
}

// explain is Why, with errors that do not name the operation.
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
	w.findQuestionAndReasoning(turn)
	all := append([]*commit.Commit{w.Commit}, w.Reasoning...)
	if w.Question != nil {
		all = append(all, w.Question)
	}
	if err := commit.LoadAll(ctx, store, all...); err != nil {
		return nil, err
	}
	if err := w.findOriginLinks(ctx, store); err != nil {
		return nil, err
	}
	return w, w.findPrompt(ctx, store)
}

// findOriginLinks sets Links: the commits that the origin names as parent, fork or predecessor. It
// leaves out a link to a missing commit.
func (w *Explanation) findOriginLinks(ctx context.Context, r objects.Reader) error {
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
		if at.Op == commit.Merge && at.ID != c.ID { // the merged commits come after those of the first parent
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

// findQuestionAndReasoning finds the question and the reasoning among the blocks of the turn.
func (w *Explanation) findQuestionAndReasoning(turn []*commit.Commit) {
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

// findPrompt sets the manifest, the prompt, and the changes that are in effect in the prompt.
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
		if e.Op == commit.Edit && edits[e.ID] || e.Op == commit.Annotate && last[e.Change().Target] == i || e.Op == commit.Compress && e.InPrompt {
			w.Shaped = append(w.Shaped, e.Change().Clone()) // a copy, because its content will be loaded
		}
	}
	return commit.LoadAll(ctx, r, w.Shaped...)
}

// Absence is the reason why a prompt does not have a block, or why it has it.
type Absence struct {
	Commit   *commit.Commit // the block
	Response *commit.Commit // the response that answered the prompt; nil: the prompt was compiled for a revision
	InPrompt bool
	Priority priority.Level
	Why      priority.Why
	By       *commit.Commit // the annotation or the summary that caused it, if one did
}

// WhyNot explains why the block of a revision is not in the prompt of revision in: the prompt that
// a response answered or, for any other commit, the prompt that is compiled for it.
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
	a.InPrompt, a.Priority, a.Why = entry.InPrompt, entry.Level, entry.Why()
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
