package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

var _ = register(newDiff)

type diffOptions struct {
	prompting
	format.DiffStyle
	exitCode, history bool
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use: "diff A [B] | diff A..B", Short: "Compare two prompts", GroupID: groupLook,
		Long: `Compare the prompts of two revisions: which blocks only one has, and which words
changed. B is HEAD when it is not given. --history compares the commits instead.`,
		Example: `  tract diff HEAD~2
  tract diff main try-2 --word
  tract diff main..try-2 --stat
  tract diff main try-2 --history`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.diff(cmd, o, args) },
	}
	o.prompting.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.Stat, "stat", false, "only count")
	f.BoolVar(&o.Word, "word", false, "compare words instead of lines")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with 1 when they differ")
	f.BoolVar(&o.history, "history", false, "compare commits instead of prompts")
	cmd.ValidArgsFunction = a.completeRevisions
	return cmd
}

func (a *app) diff(cmd *cobra.Command, o *diffOptions, args []string) error {
	ctx := cmd.Context()
	before, after, err := a.sides(ctx, args)
	if err != nil {
		return err
	}
	differ := false
	if o.history {
		differ, err = a.diffHistories(ctx, before, after)
	} else {
		differ, err = a.diffPrompts(ctx, o, before, after)
	}
	if err == nil && differ && o.exitCode {
		return no()
	}
	return err
}

// sides is the two commits that are compared.
func (a *app) sides(ctx context.Context, args []string) (before, after objects.ID, err error) {
	if len(args) == 1 && !strings.Contains(args[0], "..") {
		args = append(args, "HEAD")
	}
	r, err := a.resolver(ctx, args...)
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
	d, err := a.repo.Diff(ctx, before.String(), after.String(), o.options()...)
	if err != nil {
		return false, err
	}
	if a.json {
		return !d.Equal(), format.Encode(a.out, format.DiffJSON(d))
	}
	return !d.Equal(), a.page(func(p *format.Printer) error {
		p.Diff(d, o.DiffStyle)
		return nil
	})
}

func (a *app) diffHistories(ctx context.Context, before, after objects.ID) (differ bool, err error) {
	base, err := commit.MergeBase(ctx, a.repo.Store(), before, after)
	if err != nil {
		return false, fmt.Errorf("diff: %w", err)
	}
	lines := make([][]*commit.Commit, 2)
	for i, tip := range []objects.ID{before, after} {
		for c, err := range commit.Walk(ctx, a.repo.Store(), tip, 0, base) {
			if err != nil {
				return false, fmt.Errorf("diff: %w", err)
			}
			lines[i] = append(lines[i], c)
		}
		if err := commit.LoadAll(ctx, a.repo.Store(), lines[i]...); err != nil {
			return false, fmt.Errorf("diff: %w", err)
		}
	}
	h := diff.Histories(lines[0], lines[1])
	differ = len(h.OnlyA)+len(h.OnlyB) > 0
	if a.json {
		return differ, format.Encode(a.out, format.HistoryJSON(h))
	}
	return differ, a.page(func(p *format.Printer) error {
		p.History(h)
		return nil
	})
}
