package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func newAnnotate(a *app) *cobra.Command {
	cmd := newPriority(a, "", "annotate REV skip|normal|pinned|default", "Set the priority of a block from now on",
		`Set the priority of a block in later prompts: skip leaves it out, pinned keeps it whatever
the budget, normal includes it while the budget lasts, default removes an earlier
annotation. Past prompts do not change.`,
		`  tract annotate toolu_01 skip -m "wrong lead"
  tract annotate :/deadline pinned
  tract annotate 3fa2c1d default`)
	cmd.Args = cobra.ExactArgs(2)
	return cmd
}

func newPin(a *app) *cobra.Command {
	return newPriority(a, "pinned", "pin REV", "Keep a block in every later prompt", "Keep a block in every later prompt: short for tract annotate REV pinned.",
		`  tract pin :/deadline -m "applies throughout"`)
}

func newSkip(a *app) *cobra.Command {
	return newPriority(a, "skip", "skip REV", "Leave a block out of later prompts", "Leave a block out of later prompts: short for tract annotate REV skip.",
		`  tract skip 3fa2c1d -m "off topic"`)
}

// newPriority returns the command that sets a priority. If word is empty, the second argument
// names the priority.
func newPriority(a *app, word, use, short, long, example string) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.annotate(cmd.Context(), args[0], firstNonEmpty(word, args[len(args)-1]), reason)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "reason")
	return cmd
}

func (a *app) annotate(ctx context.Context, rev, word, reason string) error {
	level, err := priority.ParseLevel(strings.ToLower(word))
	if err != nil {
		return usageError("%s", err)
	}
	return a.changeAndPrint(ctx, rev, func(b *tract.Branch, at string) ([]objects.ID, error) {
		id, err := b.Annotate(ctx, at, level, reason)
		return []objects.ID{id}, err
	})
}
