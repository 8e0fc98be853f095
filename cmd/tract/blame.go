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
branch that was merged into. A merge commit is never named, but a commit that the merge made
after it is: an edit that resolves a conflict, the summary of --summary or --summarize, or the
copies of --squash, which have the authors of the blocks and edits.

Only what the prompt sends is shown, as it was at REV: tract blame BLOCK shows the prompt as of
that block, without later edits. tract why --not BLOCK tells why a block is not in the prompt.
Of several edits of a line only the last is named; tract show BLOCK lists all edits of a block.`,
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
