package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

type whyOptions struct {
	prompt bool
	not    string
}

func newWhy(a *app) *cobra.Command {
	o := &whyOptions{}
	cmd := &cobra.Command{
		Use: "why [REV|CALL_ID]", Short: "Say what led to a block: thoughts, prompt, settings, cost",
		Long: `Say what led to a block: the thoughts that it belongs to, the prompt that its
model saw, how the model was asked, what it cost, and the edits, annotations and
summaries that shaped that prompt. The block is named by a revision or by the id
of a tool call.

--prompt writes the body of the request, byte for byte; a hash that was stored
with the reply proves it. --not says of a block why it was not in that prompt.`,
		Example: `  tract why
  tract why toolu_01A
  tract why :/Rayleigh --prompt | jq .messages
  tract why --not :/deadline toolu_01A`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.why(cmd.Context(), o, revOrHead(args)) },
	}
	cmd.Flags().BoolVar(&o.prompt, "prompt", false, "write the body of the request as it was sent")
	cmd.Flags().StringVar(&o.not, "not", "", "say why the block of this revision was not in the prompt")
	cmd.MarkFlagsMutuallyExclusive("prompt", "not")
	cmd.ValidArgsFunction = a.completeFirstRevision
	a.completeFlag(cmd, "not", a.completeRevisions)
	return cmd
}

func (a *app) why(ctx context.Context, o *whyOptions, rev string) error {
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	switch {
	case o.not != "":
		return a.whyNot(ctx, o.not, id)
	case o.prompt:
		return a.whyPrompt(ctx, id.String())
	}
	w, err := inspect.Why(ctx, a.repo, id.String())
	if err != nil {
		return err
	}
	var x *inspect.Reproduction
	if w.Manifest != nil {
		if x, err = inspect.Reproduce(ctx, a.repo, w.Commit.ID.String(), targetOf); err != nil {
			return err
		}
	}
	return a.emitPage(format.WhyJSON(w, x), func(p *format.Printer) { p.Why(w, x) })
}

// targetOf is the wire format that a manifest names.
func targetOf(m *compile.Manifest) (llm.Target, error) {
	if _, known := providers.FindDialect(m.Dialect); !known {
		return nil, nil
	}
	return providers.Open(m.Provider, providers.Config{Model: m.Model, Dialect: m.Dialect})
}

// whyPrompt writes the body of a request, when its hash proves it.
func (a *app) whyPrompt(ctx context.Context, rev string) error {
	x, err := inspect.Reproduce(ctx, a.repo, rev, targetOf)
	if err != nil {
		return err
	}
	if x.Outcome == inspect.Same && !x.Manifest.Sent.IsZero() {
		x.Outcome, x.Why = inspect.NotReproducible, "the client sent other bytes than it was given, such as without a field that the provider did not know"
	}
	if x.Outcome != inspect.Same {
		err := fmt.Errorf("the request of %s cannot be written byte for byte: %s: %s", x.Commit.Short(), x.Outcome, x.Why)
		return &failure{code: codeNo, kind: "unproved", cause: err, hint: "tract show " + x.Commit.Short() + " --prompt shows its words"}
	}
	return a.writeJSON(x.Request.Body)
}

func (a *app) whyNot(ctx context.Context, rev string, in objects.ID) error {
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	found, err := inspect.WhyNot(ctx, a.repo, id.String(), in.String())
	if err != nil {
		return err
	}
	return a.emit(format.AbsenceJSON(found, in), func(p *format.Printer) { p.Absence(found, in) })
}
