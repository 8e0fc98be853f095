package maintain

import (
	"context"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// selectReasoning selects the reasoning to purge. It examines all reasoning of the store, because
// reasoning with the same content is one object, which must stay when one of its commits stays.
func (w *purge) selectReasoning(ctx context.Context) error {
	chosen := map[objects.ID]bool{}
	for _, rev := range w.Revs {
		history, _, err := w.historyOfRev(ctx, rev)
		if err != nil {
			return err
		}
		for c, err := range history {
			if err != nil {
				return err
			}
			chosen[c.ID] = true
		}
	}
	var all []*commit.Commit // reasoning and its edits
	pins := false            // some commit or annotation has the priority pinned
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return err
		}
		pins = pins || c.Priority == priority.Pinned
		if c.Kind == content.KindReasoning && (c.Op == commit.Append || c.Op == commit.Edit) {
			all = append(all, c)
		}
	}
	var pinned map[objects.ID]bool
	if pins {
		var err error
		if pinned, err = w.pinnedCommits(ctx); err != nil {
			return err
		}
	}
	open, err := commitsOfLastToolTurns(ctx, w.store)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b *commit.Commit) int { return b.Time.Compare(a.Time) })
	tooYoung := func(c *commit.Commit) bool {
		return w.OlderThan > 0 && !c.Time.Before(w.Time.Add(-w.OlderThan))
	}
	spared := &w.result.Spared
	w.result.Commits, err = w.selectContents(ctx, w.filterUnshared(all, func(c *commit.Commit) bool {
		switch {
		case len(w.Revs) > 0 && !chosen[c.ID]:
		case tooYoung(c):
			spared.Young++
		case pinned[c.ID]:
			spared.Pinned++
		case open[c.ID] != nil:
			spared.Open++
		default:
			return true
		}
		return false
	}, tooYoung))
	return err
}

// filterUnshared returns the reasoning to purge: the blocks that selected reports, and their edits
// unless they are too young. It leaves out reasoning with the same content as reasoning that stays.
func (w *purge) filterUnshared(all []*commit.Commit, selected, tooYoung func(*commit.Commit) bool) (list []*commit.Commit) {
	purged := map[objects.ID]bool{}
	stays := map[objects.ID]bool{} // contents
	for _, op := range []commit.Op{commit.Append, commit.Edit} {
		for _, c := range all {
			if c.Op != op {
				continue
			}
			if op == commit.Append {
				purged[c.ID] = selected(c)
			} else {
				purged[c.ID] = purged[c.Target] && !tooYoung(c)
			}
			if !purged[c.ID] {
				stays[c.ContentID] = true
			}
		}
	}
	for _, c := range all {
		switch {
		case !purged[c.ID]:
		case stays[c.ContentID]:
			w.result.Spared.Shared++
		default:
			list = append(list, c)
		}
	}
	return list
}

// pinnedCommits returns the ids of the commits that are pinned in some history.
func (w *purge) pinnedCommits(ctx context.Context) (pinned map[objects.ID]bool, err error) {
	pinned = map[objects.ID]bool{}
	tips, err := history.Tips(ctx, w.store)
	for i := 0; i < len(tips) && err == nil; i++ {
		var entries []compile.Entry
		entries, err = compile.Decisions(ctx, w.store, tips[i], compile.Options{})
		for _, e := range entries {
			if e.Level == priority.Pinned {
				pinned[e.ID] = true
			}
		}
	}
	return pinned, err
}
