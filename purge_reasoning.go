package tract

import (
	"context"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/refs"
)

// reasoning adds the reasoning that goes. All reasoning is looked at: what stays decides
// too.
func (w *purge) reasoning(ctx context.Context) error {
	chosen := map[objects.ID]bool{}
	for _, rev := range w.Revs {
		from, to, err := w.repo.resolver().Range(ctx, rev)
		if err != nil {
			return err
		}
		for c, err := range commit.History(ctx, w.repo.store, []objects.ID{to}, []objects.ID{from}) {
			if err != nil {
				return err
			}
			chosen[c.ID] = true
		}
	}
	var all []*commit.Commit // and edits of it
	pins := false            // some commit or annotation pins something
	for c, err := range w.repo.ever(ctx) {
		if err != nil {
			return err
		}
		pins = pins || c.Priority == priority.Pinned
		if c.Kind == content.KindReasoning && (c.Op == commit.Append || c.Op == commit.Edit) {
			all = append(all, c)
		}
	}
	pinned, err := w.repo.pinned(ctx, pins)
	if err != nil {
		return err
	}
	open, err := w.repo.openTurns(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b *commit.Commit) int { return b.Time.Compare(a.Time) })
	young := func(c *commit.Commit) bool {
		return w.OlderThan > 0 && !c.Time.Before(w.call.now.Add(-w.OlderThan))
	}
	spared := &w.done.Spared
	w.done.Commits, err = w.contents(ctx, w.separable(all, func(c *commit.Commit) bool {
		switch {
		case len(w.Revs) > 0 && !chosen[c.ID]:
		case young(c):
			spared.Young++
		case pinned[c.ID]:
			spared.Pinned++
		case open[c.ID] != nil:
			spared.Open++
		default:
			return true
		}
		return false
	}, young))
	return err
}

// separable gives the reasoning that goes, but for what equals reasoning that stays. An
// edit goes with its block, unless it is young.
func (w *purge) separable(all []*commit.Commit, goes, young func(*commit.Commit) bool) (list []*commit.Commit) {
	going := map[objects.ID]bool{}
	stays := map[objects.ID]bool{} // contents
	for _, op := range []commit.Op{commit.Append, commit.Edit} {
		for _, c := range all {
			if c.Op != op {
				continue
			}
			if op == commit.Append {
				going[c.ID] = goes(c)
			} else {
				going[c.ID] = going[c.Target] && !young(c)
			}
			if !going[c.ID] {
				stays[c.Content] = true
			}
		}
	}
	for _, c := range all {
		switch {
		case !going[c.ID]:
		case stays[c.Content]:
			w.done.Spared.Shared++
		default:
			list = append(list, c)
		}
	}
	return list
}

// pinned is the commits that some history has pinned, if any commit pins something.
func (r *Repo) pinned(ctx context.Context, any bool) (map[objects.ID]bool, error) {
	pinned := map[objects.ID]bool{}
	if !any {
		return pinned, nil
	}
	tips, err := r.tips(ctx)
	for i := 0; i < len(tips) && err == nil; i++ {
		var entries []compile.Entry
		entries, err = compile.Decisions(ctx, r.store, tips[i], compile.Options{})
		for _, e := range entries {
			if e.Level == priority.Pinned {
				pinned[e.ID] = true
			}
		}
	}
	return pinned, err
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

// openTurns is the commits of all turns that are open: at the end of a branch or of a
// response that could not be committed to its branch. Their seals are needed.
func (r *Repo) openTurns(ctx context.Context) (map[objects.ID]*commit.Commit, error) {
	open := map[objects.ID]*commit.Commit{}
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
				open[c.ID] = c
			}
		}
	}
	return open, nil
}
