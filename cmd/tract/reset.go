package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
)

func newReset(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use: "reset REV", Short: "Move the branch to another commit",
		Long: `Move the branch to another commit. Only the ref moves: the commits stay in the store, tract
reflog shows where the branch was, and tract undo moves it back.`,
		Example: `  tract reset 'HEAD^{turn}'
  tract reset main@{1}`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reset(cmd.Context(), args[0], dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only report the move")
	return cmd
}

func (a *app) reset(ctx context.Context, rev string, dryRun bool) error {
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	to, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	from, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	what := "would move"
	if !dryRun {
		if err := b.Reset(ctx, to.String()); err != nil {
			return err
		}
		what = "moved"
	}
	if a.json {
		return format.Encode(a.out, map[string]any{"branch": b.Name(), "from": from, "to": to, "done": what})
	}
	c, damaged := a.repo.Show(ctx, to.String())
	if err := a.damage.collectDamage(damaged); err != nil {
		return err
	}
	p := a.printer()
	p.Line(capitalize(what) + " " + b.Name() + " from " + from.Short() + " to " + to.Short() + ": " + format.SummaryOf(c, 60))
	return p.Err()
}
