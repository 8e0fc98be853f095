package main

import (
	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

func newRevert(a *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "revert REV", Short: "Take back the effect of a commit in later prompts",
		Long: `Take back the effect of a commit in later prompts; past prompts do not change. Reverting a
block leaves it out of prompts, as tract skip does. Reverting an edit restores the earlier
text, reverting an annotation restores the earlier priority, and reverting a merge leaves
out everything that the merge added.`,
		Example: `  tract revert toolu_01 -m "a wrong lead"
  tract revert :/noon`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeAndPrint(cmd.Context(), args[0], func(b *tract.Branch, at string) ([]objects.ID, error) {
				return b.Revert(cmd.Context(), at, reason)
			})
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "reason")
	return cmd
}
