package main

import "github.com/spf13/cobra"

func newCherryPick(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cherry-pick REV...", Short: "Copy commits of other branches to this one",
		Long: `Commit blocks of other branches again on this branch, in one transaction. A..B selects the
commits that B has and A does not. A tool call is copied with its result and its reasoning,
and a result with its call, so that no prompt has one without the other. The copies keep
the times and authors, and the usage of a response is counted only once.`,
		Example: `  tract cherry-pick try-2
  tract cherry-pick toolu_01
  tract cherry-pick main..try-2`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, err := a.currentOrNewBranch(ctx)
			if err != nil {
				return err
			}
			revs := make([]string, len(args))
			for i, rev := range args {
				if revs[i], err = a.resolveRange(ctx, rev); err != nil {
					return err
				}
			}
			ids, err := b.CherryPick(ctx, revs)
			if err != nil {
				return err
			}
			return a.printAppended(ctx, b, ids...)
		},
	}
}
