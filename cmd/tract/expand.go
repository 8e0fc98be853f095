package main

import "github.com/spf13/cobra"

func newExpand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "expand REV", Short: "Restore what a summary replaced",
		Long: `Restore the commits that a summary replaced, in every later prompt. REV is the summary or
one of those commits.`,
		Example: `  tract expand :/SQLite
  tract expand 3fa2c1d`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeFirstRevision,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, at, err := a.branchAndCommit(ctx, args[0])
			if err != nil {
				return err
			}
			id, err := b.Expand(ctx, at.String())
			if err != nil {
				return err
			}
			return a.printAppended(ctx, b, id)
		},
	}
}
