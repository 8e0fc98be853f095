package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// abandonedText is the result of an abandoned call.
const abandonedText = "The call was abandoned: it was not run."

type toolResultOptions struct {
	appendFlags
	failed, abandon bool
}

func newToolResult(a *app) *cobra.Command {
	o := &toolResultOptions{}
	cmd := &cobra.Command{
		Use: "tool-result ID [TEXT|-]", Short: "Commit the result of a tool call",
		Long: `Commit the result of a pending tool call; tract status lists the pending calls. --abandon
ends a call that will never run.`,
		Example: `  tract tool-result call_1 "14 degrees, rain"
  ./run-tool | tract tool-result call_2 -F -
  tract tool-result call_3 --abandon`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.toolResult(cmd.Context(), o, args) },
	}
	o.addFlags(a, cmd)
	cmd.Flags().BoolVar(&o.failed, "error", false, "the tool failed; the text is its error")
	cmd.Flags().BoolVar(&o.abandon, "abandon", false, "the call will never run: commit a result that says so")
	cmd.ValidArgsFunction = a.completeFirst(a.pendingCallCompletions)
	return cmd
}

func (a *app) toolResult(ctx context.Context, o *toolResultOptions, args []string) error {
	result := content.ToolResult{CallID: args[0], IsError: o.failed}
	if o.abandon {
		if len(args) > 1 || o.file != "" {
			return usageError("both --abandon and a text given: use one")
		}
		result.Text, result.IsError = abandonedText, true
	} else {
		text, err := o.read(ctx, a, args[1:], "")
		if err != nil {
			return err
		}
		result.Text = text
	}
	return a.commitBlock(ctx, result, o.appendOptions(a))
}

// toolResultCommandOf returns the command that commits the result of a tool call, in a session or
// in a shell.
func (a *app) toolResultCommandOf(id string) string {
	if a.inSession {
		return "/result " + shellQuote(id) + " TEXT"
	}
	return toolResultCommand(id, "-F -")
}

// toolResultCommand returns the shell command line that commits the result of a tool call with
// flags.
func toolResultCommand(id, flags string) string {
	if strings.HasPrefix(id, "-") { // which is no flag
		return "tract tool-result " + flags + " -- " + shellQuote(id)
	}
	return "tract tool-result " + shellQuote(id) + " " + flags
}

// withPendingCallsIfResultError adds the pending calls to a tract.ResultError, the error for a
// result without a call.
func (a *app) withPendingCallsIfResultError(ctx context.Context, b *tract.Branch, err error) error {
	if !errors.As(err, new(*tract.ResultError)) {
		return err
	}
	calls, bad := b.Pending(ctx)
	if bad != nil {
		return err
	}
	if len(calls) == 0 {
		return withHint(err, "no call is pending; a result must precede the next user message (tract undo takes that back); tract tool-call commits a call by hand")
	}
	var waiting []string
	for _, c := range calls {
		waiting = append(waiting, shellQuote(c.CallID))
	}
	return withHint(err, "pending: %s", strings.Join(waiting, ", "))
}
