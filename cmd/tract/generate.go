package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/llm"
)

func newGenerate(a *app) *cobra.Command {
	o := &requestFlags{}
	cmd := &cobra.Command{
		Use: "generate", Short: "Ask the model and commit its response",
		Long: `Ask the model to continue the branch, and commit its response in one transaction, with the
reasoning before the answer. A response is not lost if it breaks off or if the branch moved
in the meantime: see tract rescue.

On a terminal the reasoning is shown as it streams; in a pipe only the answer goes to
stdout. Keys are read from environment variables such as ANTHROPIC_API_KEY.`,
		Example: `  tract user "Why is the sky blue?" && tract generate --provider anthropic --model claude-sonnet-4-5
  tract generate --base-url http://localhost:11434/v1 --model qwen3
  tract generate --effort high --tools tools.json
  tract generate --dry-run | jq .messages`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.generate(cmd.Context(), o) },
	}
	o.addFlags(a, cmd)
	return cmd
}

func (a *app) generate(ctx context.Context, o *requestFlags) error {
	client, opts, err := a.clientAndOptions(ctx, o)
	if err != nil {
		return err
	}
	if o.dryRun {
		id, err := a.resolve(ctx, "HEAD")
		if err != nil {
			return err
		}
		return a.printDryRun(ctx, id.String(), client, opts)
	}
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return a.emptyBranchError(ctx, b.Name())
	}
	_, err = a.ask(ctx, o, b, client, nil, opts)
	return err
}

// model is the part of a provider's client that the commands use.
type model interface {
	llm.Client
	llm.Target
}

// clientAndOptions returns the client and the options for a request.
func (a *app) clientAndOptions(ctx context.Context, o *requestFlags) (model, tract.AskOptions, error) {
	client, err := a.client()
	if err != nil {
		return nil, tract.AskOptions{}, err
	}
	opts, err := o.options(ctx, a, client)
	return client, opts, err
}

// responseOf returns the response that an error carries, or nil.
func responseOf(err error) *tract.Response {
	var broken *tract.IncompleteError
	var moved *tract.ConflictError
	var unsaved *tract.UnsavedError
	switch {
	case errors.As(err, &broken):
		return broken.Response
	case errors.As(err, &moved):
		return moved.Response
	case errors.As(err, &unsaved):
		return unsaved.Response
	}
	return nil
}
