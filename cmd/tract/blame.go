package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

func newBlame(a *app) *cobra.Command {
	o := &promptFlags{}
	cmd := &cobra.Command{
		Use: "blame [REV]", Short: "Show which commit each line of a prompt comes from",
		Long: `Show the lines of a revision's prompt, each with the commit that introduced it, its author
or model, and its time. A line that an edit left unchanged belongs to the commit before
the edit. A line that both sides of a merge have belongs to the side of the first parent, the
branch that was merged into. After tract merge --squash, edits of the other branch
belong to the commits of the squash, which have the authors of the edits.

Of several edits of a line only the last is named, and a merge never; tract show BLOCK lists
all edits of a block.`,
		Example: `  tract blame
  tract blame 3fa2c1d --include-reasoning
  tract blame --json | jq '.[] | select(.model) | .text'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.blame(ctx, o, id) }),
	}
	o.addFlags(cmd)
	return cmd
}

func (a *app) blame(ctx context.Context, o *promptFlags, id objects.ID) error {
	prompt, err := a.repo.Compile(ctx, id.String(), o.compileOptions())
	if err != nil {
		return err
	}
	lines, err := inspect.Blame(ctx, a.repo, prompt)
	if err != nil {
		return err
	}
	return a.emitPage(format.BlameJSON(lines), func(p *format.Printer) { p.Blame(lines) })
}
