package main

import (
	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
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
			ids, err := b.CherryPick(ctx, revs, tract.Command("cherry-pick"))
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
			ids, err := b.Revert(ctx, at.String(), reason, tract.Command("revert"))
			if err != nil {
				return err
			}
			return a.added(ctx, b, ids...)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	return cmd
}

func newRestore(a *app) *cobra.Command {
	source := ""
	cmd := &cobra.Command{
		Use: "restore REV", Short: "Give a block an earlier text from now on",
		Long: `Give an edited block the words it had before, from now on: its first ones, or with
--source those that it had at a revision. A source that is an edit of the block is
that text. The edits stay in the history.`,
		Example: `  tract restore :/sky
  tract restore 3fa2c1d --source main@{yesterday}`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeFirstRevision,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			b, at, err := a.currentAt(ctx, args[0])
			if err != nil {
				return err
			}
			from := ""
			if source != "" {
				id, err := a.resolve(ctx, source)
				if err != nil {
					return err
				}
				from = id.String()
			}
			id, err := b.Restore(ctx, at.String(), from, tract.Command("restore"))
			if err != nil {
				return err
			}
			return a.added(ctx, b, id)
		},
	}
	cmd.Flags().StringVarP(&source, "source", "s", "", "revision whose text to take")
	a.completeFlag(cmd, "source", a.completeRevisions)
	return cmd
}
