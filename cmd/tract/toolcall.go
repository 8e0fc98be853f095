package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/content"
)

func newToolCall(a *app) *cobra.Command {
	o := &appendFlags{}
	cmd := &cobra.Command{
		Use: "tool-call ID NAME [ARGUMENTS|-]", Short: "Commit a tool call by hand",
		Long: `Commit a tool call by hand, as if a model had made it. The call is pending until its result
is committed with tract tool-result ID. The arguments default to {}.`,
		Example: `  tract tool-call call_1 get_weather '{"city":"Paris"}'
  tract tool-call call_2 search -F arguments.json`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error { return a.toolCall(cmd.Context(), o, args) },
	}
	o.addFlags(a, cmd)
	return cmd
}

func (a *app) toolCall(ctx context.Context, o *appendFlags, args []string) error {
	arguments := "{}"
	if len(args) == 3 || o.file != "" || !isTerminal(a.in) {
		text, err := o.read(ctx, a, args[2:], "")
		if err != nil {
			return err
		}
		arguments = text
	}
	switch {
	case args[0] == "" || args[1] == "":
		return usageError("tool call %q of %q: an id and a name are required", args[0], args[1])
	case arguments == "":
		arguments = "{}"
	case !json.Valid([]byte(arguments)):
		a.info("warning: the arguments are not JSON; they are stored as they are")
	}
	return a.commitBlock(ctx, content.ToolCall{CallID: args[0], Name: args[1], Arguments: arguments}, o.appendOptions(a))
}
