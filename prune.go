package tract

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/refs"
	"github.com/tract-vcs/tract/settings"
)

// Pruning says which thoughts are to be taken away.
type Pruning struct {
	Revs    []string  // only those on the histories of these; none: of all branches, tags and rescued replies, and where these once were
	Before  time.Time // only those committed before it; zero: of any age
	Session string    // only those that were committed on this branch
	Model   string    // only those of models of this name, in which * stands for anything
	Pinned  bool      // those that a person pinned, too
	Why     string    // what tombstones say
	Dry     bool      // only say what would go

	Progress func(done, total int64)
}

// PruneResult is what a Prune took away, or would. What was spared is counted once, by
// the first reason.
type PruneResult struct {
	Erasure
	Thoughts []*commit.Commit // whose words went, newest first; and edits of them
	Young    int              // spared, because they are not old enough
	Pinned   int              // because a person pinned them
	Open     int              // because an open tool loop needs them
	Shared   int              // because a thought that is spared says the same
	Copies   []*commit.Commit // what a model was shown to write a summary, which has words that go; on no branch
}

// Prune takes the words of thoughts away, and their seals. Their commits stay, every
// hash still holds, and what they cost is still counted. Prompts that would send them
// say that they were pruned. Spared are thoughts that a branch has pinned, those of
// turns in which tools were used and nobody has spoken since, and those that say the
// same as a thought which stays. It cannot be undone.
func (r *Repo) Prune(ctx context.Context, p Pruning, opts ...Option) (*PruneResult, error) {
	c, err := r.call(opts)
	if err != nil {
		return nil, err
	}
	done, err := r.prune(ctx, c, p)
	if err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	return done, nil
}

func (r *Repo) prune(ctx context.Context, c *call, p Pruning) (*PruneResult, error) {
	w := &pruning{Pruning: p, repo: r, done: &PruneResult{}}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	if err := w.spare(ctx); err != nil {
		return nil, err
	}
	list, err := w.choose(ctx)
	if err != nil {
		return nil, err
	}
	e, err := r.newErasing(ctx, c, p.Why)
	if err != nil {
		return nil, err
	}
	if w.done.Thoughts, err = e.contents(ctx, list); err != nil {
		return nil, err
	}
	w.done.Copies = e.copies
	w.done.Erasure, err = e.erase(ctx, p.Dry, p.Progress)
	return w.done, err
}

// pruning is one Prune.
type pruning struct {
	Pruning
	repo *Repo
	done *PruneResult

	thoughts []*commit.Commit // of the whole store, and edits of them
	chosen   map[objects.ID]bool
	pins     bool // some commit or annotation pins something
	pinned   map[objects.ID]bool
	open     map[objects.ID]bool
}

// look finds all thoughts there are: those that stay decide too.
func (w *pruning) look(ctx context.Context) error {
	if len(w.Revs) > 0 {
		from, err := w.repo.tips(ctx, w.Revs)
		if err != nil {
			return err
		}
		w.chosen = map[objects.ID]bool{}
		for c, err := range w.repo.everything(ctx, from) {
			if err != nil {
				return err
			}
			w.chosen[c.ID] = true
		}
	}
	for c, err := range w.repo.ever(ctx) {
		if err != nil {
			return err
		}
		w.pins = w.pins || c.Priority == priority.Pinned
		if c.Kind == content.KindReasoning && (c.Op == commit.Append || c.Op == commit.Edit) {
			w.thoughts = append(w.thoughts, c)
		}
	}
	slices.SortStableFunc(w.thoughts, func(a, b *commit.Commit) int { return b.Time.Compare(a.Time) })
	return nil
}

// spare finds the thoughts that a branch has pinned or needs.
func (w *pruning) spare(ctx context.Context) error {
	w.pinned, w.open = map[objects.ID]bool{}, map[objects.ID]bool{}
	for _, folder := range []string{refs.Heads, refs.Tags, refs.Rescued} {
		list, err := w.repo.store.Refs(ctx, objects.RefQuery{Prefix: folder})
		if err != nil {
			return err
		}
		for _, ref := range list {
			if folder != refs.Tags {
				turn, err := w.repo.openTurn(ctx, ref.Target)
				if err != nil {
					return err
				}
				for _, c := range turn {
					w.open[c.ID] = true
				}
			}
			if err := w.pinnedAt(ctx, ref.Target); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTurn is the last turn of a history, if tools were used in it.
func (r *Repo) openTurn(ctx context.Context, tip objects.ID) (turn []*commit.Commit, err error) {
	tools := false
	for c, err := range commit.Walk(ctx, r.store, tip, 0) {
		if err != nil {
			return nil, err
		}
		if c.Op == commit.Merge || c.BeginsTurn() {
			break
		}
		tools = tools || c.Kind == content.KindToolCall || c.Kind == content.KindToolResult
		turn = append(turn, c)
	}
	if !tools {
		return nil, nil
	}
	return turn, nil
}

// openContents is the words of all turns that are open: at the end of a branch or of a
// reply that could not land. Their seals are needed.
func (r *Repo) openContents(ctx context.Context) (map[objects.ID]bool, error) {
	open := map[objects.ID]bool{}
	for _, folder := range []string{refs.Heads, refs.Rescued} {
		list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: folder})
		if err != nil {
			return nil, err
		}
		for _, ref := range list {
			turn, err := r.openTurn(ctx, ref.Target)
			if err != nil {
				return nil, err
			}
			for _, c := range turn {
				open[c.Content] = true
			}
		}
	}
	delete(open, objects.ID{})
	return open, nil
}

// choose gives the thoughts that go. An edit goes with its thought.
func (w *pruning) choose(ctx context.Context) (list []*commit.Commit, err error) {
	if w.Session != "" || w.Model != "" {
		if err := w.origins(ctx); err != nil {
			return nil, err
		}
	}
	goes := map[objects.ID]bool{}
	stays := map[objects.ID]bool{} // contents
	decide := func(c *commit.Commit, so bool) {
		if goes[c.ID] = so; !so {
			stays[c.Content] = true
		}
	}
	for _, c := range w.thoughts {
		if c.Op == commit.Append {
			decide(c, w.goes(c))
		}
	}
	for _, c := range w.thoughts {
		if c.Op == commit.Edit {
			decide(c, goes[c.Target] && (w.Before.IsZero() || c.Time.Before(w.Before)))
		}
	}
	for _, c := range w.thoughts {
		switch {
		case !goes[c.ID]:
		case stays[c.Content]:
			w.done.Shared++
		default:
			list = append(list, c)
		}
	}
	return list, nil
}

// pinnedAt notes what a history has pinned, where that saves a thought.
func (w *pruning) pinnedAt(ctx context.Context, tip objects.ID) error {
	if !w.pins || w.Pinned {
		return nil
	}
	entries, err := compile.Decisions(ctx, w.repo.store, tip, compile.Options{})
	for _, e := range entries {
		if e.Level == priority.Pinned {
			w.pinned[e.ID] = true
		}
	}
	return err
}

// origins reads where thoughts came from.
func (w *pruning) origins(ctx context.Context) error {
	known := map[objects.ID]*commit.Origin{}
	for _, c := range w.thoughts {
		if c.Origin.IsZero() {
			continue
		}
		if known[c.Origin] == nil {
			from, err := commit.ReadOrigin(ctx, w.repo.store, c.Origin)
			if err != nil {
				return err
			}
			known[c.Origin] = from
		}
		c.From = known[c.Origin]
	}
	return nil
}

// goes decides on one thought, and counts why it stays when it would have gone.
func (w *pruning) goes(c *commit.Commit) bool {
	t := Trace{Commit: c}
	switch {
	case w.chosen != nil && !w.chosen[c.ID],
		w.Session != "" && t.Session() != w.Session,
		w.Model != "" && !settings.Match(w.Model, t.Model()):
	case !w.Before.IsZero() && !c.Time.Before(w.Before):
		w.done.Young++
	case w.pinned[c.ID]:
		w.done.Pinned++
	case w.open[c.ID]:
		w.done.Open++
	default:
		return true
	}
	return false
}
