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
		Use: "why [REV|CALL_ID]", Short: "Explain a block: its reasoning, prompt, settings and cost",
		Long: `Explain what led to a block: its reasoning, the prompt that the model received, the
settings, the cost, and the edits, annotations and summaries that shaped the prompt. The
block is named by a revision or by the id of a tool call.

--prompt writes the request body, byte for byte, after checking it against the stored hash.
--not explains why another block was not in that prompt.`,
		Example: `  tract why
  tract why toolu_01A
  tract why :/Rayleigh --prompt | jq .messages
  tract why --not :/deadline toolu_01A`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.why(ctx, o, id) }),
	}
	cmd.Flags().BoolVar(&o.prompt, "prompt", false, "write the request body exactly as it was sent")
	cmd.Flags().StringVar(&o.not, "not", "", "explain why the block of this revision was not in the prompt")
	cmd.MarkFlagsMutuallyExclusive("prompt", "not")
	a.completeFlag(cmd, "not", a.completeRevisions)
	return cmd
}

func (a *app) why(ctx context.Context, o *whyOptions, id objects.ID) error {
	switch {
	case o.not != "":
		return a.printWhyNot(ctx, o.not, id)
	case o.prompt:
		return a.printReproducedRequest(ctx, id.String())
	}
	w, err := inspect.Why(ctx, a.repo, id.String())
	if err != nil {
		return err
	}
	var x *inspect.Reproduction
	if w.Manifest != nil {
		if x, err = a.reproduce(ctx, w.Commit.ID.String()); err != nil {
			return err
		}
	}
	return a.emitPage(format.WhyJSON(w, x), func(p *format.Printer) { p.Why(w, x) })
}

// manifestTargetIfKnown returns the target that a manifest names; nil if its dialect is unknown.
func manifestTargetIfKnown(m *compile.Manifest) (llm.Target, error) {
	if _, known := providers.FindDialect(m.Dialect); !known {
		return nil, nil
	}
	return providers.Open(m.Provider, providers.Config{Model: m.Model, Dialect: m.Dialect})
}

// reproduce rebuilds the request of a response.
func (a *app) reproduce(ctx context.Context, rev string) (*inspect.Reproduction, error) {
	return inspect.Reproduce(ctx, a.repo, rev, manifestTargetIfKnown)
}

// printReproducedRequest writes the body of a request if it has the stored hash, and a body with
// masks with an error that says so.
func (a *app) printReproducedRequest(ctx context.Context, rev string) error {
	x, err := a.reproduce(ctx, rev)
	if err != nil {
		return err
	}
	if x.Outcome == inspect.AsSent {
		return a.writeTerminalSafeJSON(x.Request.Body)
	}
	if x.Outcome == inspect.Same && !x.Manifest.Sent.IsZero() {
		x.Outcome, x.Why = inspect.NotReproducible, "the client sent a modified request, such as one without a field unknown to the provider"
	}
	if x.Outcome != inspect.Same && !x.Masked {
		err := fmt.Errorf("request of %s: cannot be rebuilt byte for byte: %s: %s", x.Commit.Short(), x.Outcome, x.Why)
		return &failure{code: codeNo, kind: "unproved", cause: err, hint: "tract show " + x.Commit.Short() + " --prompt shows its text"}
	}
	if err := a.writeTerminalSafeJSON(x.Request.Body); err != nil || !x.Masked {
		return err
	}
	return &failure{code: codeNo, kind: "unproved", cause: fmt.Errorf("request of %s: not byte for byte what was sent: secrets in it were masked", x.Commit.Short())}
}

func (a *app) printWhyNot(ctx context.Context, rev string, in objects.ID) error {
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
