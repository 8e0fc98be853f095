package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

type mergeBaseOptions struct{ all, isAncestor bool }

func newMergeBase(a *app) *cobra.Command {
	o := &mergeBaseOptions{}
	cmd := &cobra.Command{
		Use: "merge-base A B", Short: "Print the best common ancestor of two revisions",
		Long: `Print the best common ancestor of two revisions. The exit code is 1 if they have none.
With --is-ancestor nothing is printed: the exit code says whether A is an ancestor of B.`,
		Example: `  tract merge-base main try-2
  tract log $(tract merge-base main try-2)..try-2
  tract merge-base --is-ancestor good HEAD`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.mergeBase(cmd.Context(), o, args) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "print all, where histories were merged crosswise")
	cmd.Flags().BoolVar(&o.isAncestor, "is-ancestor", false, "only check whether A is an ancestor of B")
	cmd.MarkFlagsMutuallyExclusive("all", "is-ancestor")
	return cmd
}

func (a *app) mergeBase(ctx context.Context, o *mergeBaseOptions, args []string) error {
	r, err := a.newResolver(ctx, args...)
	if err != nil {
		return err
	}
	left, err := r.Resolve(ctx, args[0])
	if err != nil {
		return err
	}
	right, err := r.Resolve(ctx, args[1])
	if err != nil {
		return err
	}
	bases, err := inspect.MergeBases(ctx, a.repo, left.String(), right.String())
	if err != nil {
		return err
	}
	if o.isAncestor {
		if len(bases) == 1 && bases[0] == left {
			return nil
		}
		return negativeAnswer()
	}
	if !o.all {
		bases = bases[:min(len(bases), 1)]
	}
	err = a.emit(append([]objects.ID{}, bases...), func(p *format.Printer) {
		for _, id := range bases {
			p.Line(id.String())
		}
	})
	if err == nil && len(bases) == 0 {
		return negativeAnswer()
	}
	return err
}
