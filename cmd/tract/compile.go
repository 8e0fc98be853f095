package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/refs"
)

type compileOptions struct {
	prompting
	until, to, style string
	explain          bool
}

// prompting is what decides on a prompt, for compile and diff.
type prompting struct {
	include bool
	budget  uint
}

func (o *prompting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.include, "include-reasoning", false, "send past reasoning that is left out only by default")
	cmd.Flags().UintVar(&o.budget, "budget", 0, "most tokens, by estimate; whole turns go, the oldest first")
}

func (o *prompting) options() []tract.Option {
	opts := []tract.Option{tract.Budget(int(min(o.budget, math.MaxInt)))}
	if o.include {
		opts = append(opts, tract.IncludeReasoning())
	}
	return opts
}

func newCompile(a *app) *cobra.Command {
	o := &compileOptions{}
	cmd := &cobra.Command{
		Use: "compile [REV]", Short: "Show the prompt that a model would get",
		Long: `Show the prompt that a model would get: of a revision as it was then, or of the
time that --until names. --explain says for every commit whether it goes in, and
by which rule. --for gives the body of the request for a dialect or a provider;
without it the provider of the settings, if there is one, decides what has to go in.`,
		Example: `  tract compile
  tract compile try-2 --include-reasoning
  tract compile --explain --budget 8000
  tract compile --until yesterday
  tract compile --for anthropic/claude-sonnet-4-5 | jq .messages`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compile(cmd, o, orHead(args)) },
	}
	o.prompting.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.until, "until", "", "the prompt as it was at a time, such as yesterday")
	f.StringVar(&o.to, "for", "", "the request body for a DIALECT or provider, with /MODEL")
	f.StringVar(&o.style, "format", "text", "text, or json for the neutral form")
	f.BoolVar(&o.explain, "explain", false, "list every commit with its level and the reason")
	cmd.ValidArgsFunction = a.completeFirstRevision
	a.completeFlag(cmd, "for", cobra.FixedCompletions(providers.Names(), cobra.ShellCompDirectiveNoFileComp))
	a.completeFlag(cmd, "format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// asked reads what the flags ask for: a target, if they name one, and the options.
func (o *compileOptions) asked(a *app, cmd *cobra.Command) (target llm.Target, opts []tract.Option, err error) {
	if o.style != "text" && o.style != "json" {
		return nil, nil, usage(cmd, "--format %q: want text or json", o.style)
	}
	opts = o.options()
	if o.until != "" {
		t, err := refs.ParseTime(o.until, time.Now())
		if err != nil {
			return nil, nil, usage(cmd, "--until: %s", err)
		}
		opts = append(opts, tract.Until(t))
	}
	if o.to == "" {
		return nil, append(opts, a.asConfigured()...), nil
	}
	if target, err = targetFor(o.to); err != nil {
		return nil, nil, err
	}
	return target, append(opts, asTarget(target)...), nil
}

// asConfigured is the options that compile for the provider of the settings, if they name
// one that can be asked: what it wants back decides on the prompt too.
func (a *app) asConfigured() []tract.Option {
	client, err := a.client()
	if err != nil {
		return nil // nobody is asked
	}
	return []tract.Option{tract.For(client)}
}

func (a *app) compile(cmd *cobra.Command, o *compileOptions, rev string) error {
	ctx := cmd.Context()
	target, opts, err := o.asked(a, cmd)
	if err != nil {
		return err
	}
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	asJSON := a.json || o.style == "json"
	if target != nil && !asJSON && !o.explain {
		if err := a.printRequest(ctx, id.String(), target, opts); err != nil {
			return err
		}
		return a.warnOfRules(ctx, id.String(), target, opts)
	}
	p, err := a.repo.Compile(ctx, id.String(), opts...)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		return format.Encode(a.out, format.PromptJSON(p, o.to))
	case o.explain:
		return a.explain(ctx, p)
	}
	return a.page(func(pen *format.Printer) error {
		pen.Prompt(p)
		pen.Tokens(p.Tokens)
		return nil
	})
}

// explain shows why each commit goes into a prompt or stays out.
func (a *app) explain(ctx context.Context, p *compile.Prompt) error {
	if err := a.loadLeftOut(ctx, p); err != nil {
		return err
	}
	return a.page(func(pen *format.Printer) error {
		pen.Explain(p)
		pen.Tokens(p.Tokens)
		pen.Scale(p.Scale)
		return nil
	})
}

// loadLeftOut reads what compiling had no need to: the words of blocks that are
// left out.
func (a *app) loadLeftOut(ctx context.Context, p *compile.Prompt) error {
	p.Entries = slices.Clone(p.Entries) // prompts share theirs
	var list []*compile.Entry
	for i := range p.Entries {
		list = append(list, &p.Entries[i])
	}
	return compile.Load(ctx, a.repo.Store(), list...)
}

// printRequest writes the body of a request as it would be sent.
func (a *app) printRequest(ctx context.Context, rev string, target llm.Target, opts []tract.Option) error {
	req, err := a.repo.Request(ctx, rev, target, opts...)
	if err != nil {
		return err
	}
	return a.writeJSON(append(req.Body, '\n'))
}

// warnOfRules says why a request that was printed would be refused.
func (a *app) warnOfRules(ctx context.Context, rev string, target llm.Target, opts []tract.Option) error {
	problems, err := a.repo.Check(ctx, rev, target, opts...)
	if err != nil {
		return err
	}
	for _, found := range problems {
		a.warn(found)
	}
	return nil
}

// asTarget is the options that compile for a target. The model that it names counts
// more than that of the settings.
func asTarget(target llm.Target) []tract.Option {
	opts := []tract.Option{tract.For(target)}
	if model := target.Address().Model; model != "" {
		opts = append(opts, tract.Set("model", model))
	}
	return opts
}

// targetFor is the wire format of "DIALECT[/MODEL]"; a provider's name does for
// its dialect.
func targetFor(name string) (*providers.Client, error) {
	provider, model, _ := strings.Cut(name, "/")
	client, err := providers.Open(provider, providers.Config{Model: model})
	if err != nil {
		return nil, fmt.Errorf("--for %q: %w", name, err)
	}
	return client, nil
}
