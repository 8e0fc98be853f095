package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

type diffOptions struct {
	promptFlags
	format.DiffStyle
	exitCode, history, manifest, run bool
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use: "diff A [B] | diff A..B", Short: "Compare two prompts",
		Long: `Compare the prompts of two revisions: show the blocks that only one of them has, and the
changed text of the others. B defaults to HEAD. --history compares the commits instead.

--manifest compares the requests of two responses: the prompts as they were sent, and the
settings. --run compares two runs of an agent after their common beginning, and names the
first reasoning, call, argument and result that differ.`,
		Example: `  tract diff main@{1}
  tract diff main try-2 --word
  tract diff main..try-2 --stat
  tract diff main try-2 --history
  tract diff 3fa2c1d main --manifest
  tract diff --run main try-2`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.diff(cmd.Context(), o, args) },
	}
	o.promptFlags.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.Stat, "stat", false, "only show counts")
	f.BoolVar(&o.Word, "word", false, "compare words, not lines")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with code 1 if they differ")
	f.BoolVar(&o.history, "history", false, "compare commits, not prompts")
	f.BoolVar(&o.manifest, "manifest", false, "compare the requests of two responses")
	f.BoolVar(&o.run, "run", false, "show where two runs first diverge")
	cmd.MarkFlagsMutuallyExclusive("history", "manifest", "run")
	return cmd
}

func (a *app) diff(ctx context.Context, o *diffOptions, args []string) error {
	before, after, err := a.diffSides(ctx, args)
	if err != nil {
		return err
	}
	differ := false
	switch {
	case o.history:
		differ, err = a.diffHistories(ctx, before, after)
	case o.manifest:
		differ, err = a.diffManifests(ctx, o, before, after)
	case o.run:
		differ, err = a.diffRuns(ctx, o, before, after)
	default:
		differ, err = a.diffPrompts(ctx, o, before, after)
	}
	if err == nil && differ && o.exitCode {
		return negativeAnswer()
	}
	return err
}

// diffSides returns the two commits to compare.
func (a *app) diffSides(ctx context.Context, args []string) (before, after objects.ID, err error) {
	if len(args) == 1 && !strings.Contains(args[0], "..") {
		args = append(args, "HEAD")
	}
	r, err := a.newResolver(ctx, args...)
	if err != nil {
		return before, after, err
	}
	if len(args) == 2 {
		if before, err = r.Resolve(ctx, args[0]); err == nil {
			after, err = r.Resolve(ctx, args[1])
		}
		return before, after, err
	}
	return r.Range(ctx, args[0])
}

func (a *app) diffPrompts(ctx context.Context, o *diffOptions, before, after objects.ID) (differ bool, err error) {
	d, err := inspect.Diff(ctx, a.repo, before.String(), after.String(), o.compileOptions())
	if err != nil {
		return false, err
	}
	return !d.Equal(), a.emitPage(format.DiffJSON(d), func(p *format.Printer) {
		p.Diff(d, o.DiffStyle)
	})
}

// commitsOnOneSide returns, for each of two histories, the commits that the other one does not
// have, loaded and newest first; and their merge base.
func (a *app) commitsOnOneSide(ctx context.Context, before, after objects.ID) (sides [2][]*commit.Commit, base objects.ID, err error) {
	if base, err = commit.MergeBase(ctx, a.repo.Store(), before, after); err != nil {
		return sides, base, fmt.Errorf("diff: %w", err)
	}
	for i, tip := range []objects.ID{before, after} {
		other := []objects.ID{before, after}[1-i]
		for c, err := range commit.History(ctx, a.repo.Store(), []objects.ID{tip}, []objects.ID{other}) {
			if err != nil {
				return sides, base, fmt.Errorf("diff: %w", err)
			}
			sides[i] = append(sides[i], c)
		}
		if err := commit.LoadAll(ctx, a.repo.Store(), sides[i]...); err != nil {
			return sides, base, fmt.Errorf("diff: %w", err)
		}
	}
	return sides, base, nil
}

func (a *app) diffRuns(ctx context.Context, o *diffOptions, before, after objects.ID) (differ bool, err error) {
	lines, base, err := a.commitsOnOneSide(ctx, before, after)
	if err != nil {
		return false, err
	}
	for i := range lines {
		slices.Reverse(lines[i])
	}
	r := diff.Runs(lines[0], lines[1])
	return !r.Equal(), a.emitPage(format.RunJSON(r, before, after, base), func(p *format.Printer) {
		p.Run(r, base, o.DiffStyle)
	})
}

func (a *app) diffManifests(ctx context.Context, o *diffOptions, before, after objects.ID) (differ bool, err error) {
	d, asked, err := inspect.DiffRequests(ctx, a.repo, before.String(), after.String())
	if err != nil {
		return false, err
	}
	v := struct {
		Asked []inspect.RequestChange `json:"asked"`
		Diff  any                     `json:"diff"`
	}{asked, format.DiffJSON(d)}
	return !d.Equal() || len(asked) > 0, a.emitPage(v, func(p *format.Printer) {
		p.Table(mapSlice(asked, func(c inspect.RequestChange) []string {
			return []string{"~ " + c.Name, firstNonEmpty(c.A, "unsaid") + " → " + firstNonEmpty(c.B, "unsaid")}
		}))
		p.Diff(d, o.DiffStyle)
	})
}

func (a *app) diffHistories(ctx context.Context, before, after objects.ID) (differ bool, err error) {
	lines, base, err := a.commitsOnOneSide(ctx, before, after)
	if err != nil {
		return false, err
	}
	h := diff.Histories(lines[0], lines[1])
	h.Base = base
	differ = len(h.OnlyA)+len(h.OnlyB) > 0
	return differ, a.emitPage(format.HistoryJSON(h), func(p *format.Printer) {
		p.History(h)
	})
}
