package main

import "github.com/spf13/cobra"

func newRevert(a *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "revert REV", Short: "Take a commit back from now on",
		Long: `Take a commit back from now on; prompts of the past do not change. A block is left
out of prompts, as tract skip does. An edit gives way to the words before it, an
annotation to the priority before it. Of a merge, all that it brought is taken back.`,
		Example: `  tract revert toolu_01 -m "a wrong lead"
  tract revert :/noon`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeFirstRevision,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, at, err := a.branchAndCommit(ctx, args[0])
			if err != nil {
				return err
			}
			ids, err := b.Revert(ctx, at.String(), reason)
			if err != nil {
				return err
			}
			return a.printAppended(ctx, b, ids...)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	return cmd
}
