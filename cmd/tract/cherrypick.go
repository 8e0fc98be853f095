package main

import "github.com/spf13/cobra"

func newCherryPick(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cherry-pick REV...", Short: "Copy commits of other branches to this one",
		Long: `Commit blocks of other branches again on this one, in one transaction. A..B is what B has
and A has not. A tool call takes its result and its reasoning along, and a result its call,
so that no prompt has only half of them. Times and authors stay, and the usage of a
response is counted once.`,
		Example: `  tract cherry-pick try-2
  tract cherry-pick toolu_01
  tract cherry-pick main..try-2`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, err := a.currentBranch(ctx)
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
