package main

import (
	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

func newExpand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "expand REV", Short: "Restore what a summary replaced",
		Long: `Restore the commits that a summary replaced, in every later prompt. REV is the summary or
one of those commits.`,
		Example: `  tract expand :/SQLite
  tract expand 3fa2c1d`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeAndPrint(cmd.Context(), args[0], func(b *tract.Branch, at string) ([]objects.ID, error) {
				id, err := b.Expand(cmd.Context(), at)
				return []objects.ID{id}, err
			})
		},
	}
}
