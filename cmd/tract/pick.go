package main

import (
	"github.com/spf13/cobra"
)

func newCherryPick(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cherry-pick REV...", Short: "Commit blocks of other branches here",
		Long: `Commit blocks of other branches again on this one, in one transaction. A..B is
what B has and A has not. A tool call takes its result and its reasoning along, a
result its call, so that no prompt has half of them. Times and authors stay, and
what a reply cost is counted once.`,
		Example: `  tract cherry-pick try-2
  tract cherry-pick toolu_01
  tract cherry-pick main..try-2`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeRevisions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, err := a.current(ctx)
			if err != nil {
				return err
			}
			revs := make([]string, len(args))
			for i, rev := range args {
				if revs[i], err = a.spec(ctx, rev); err != nil {
					return err
				}
			}
			ids, err := b.CherryPick(ctx, revs)
			if err != nil {
				return err
			}
			return a.added(ctx, b, ids...)
		},
	}
}

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
			b, at, err := a.currentAt(ctx, args[0])
			if err != nil {
				return err
			}
			ids, err := b.Revert(ctx, at.String(), reason)
			if err != nil {
				return err
			}
			return a.added(ctx, b, ids...)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	return cmd
}
