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
	"github.com/tract-vcs/tract/objects"
)

type compileOptions struct {
	promptFlags
	until         time.Time
	target, style string
	explain       bool
}

// promptFlags are the flags that affect a compiled prompt, for compile and diff.
type promptFlags struct {
	includeReasoning bool
	budget           uint
}

func (o *promptFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.includeReasoning, "include-reasoning", false, "include past reasoning that is left out by default")
	cmd.Flags().UintVar(&o.budget, "budget", 0, "largest estimated number of tokens; the oldest turns are left out first")
}

func (o *promptFlags) compileOptions() tract.CompileOptions {
	return tract.CompileOptions{Budget: int(min(o.budget, math.MaxInt)), IncludeReasoning: o.includeReasoning}
}

func newCompile(a *app) *cobra.Command {
	o := &compileOptions{style: "text"}
	cmd := &cobra.Command{
		Use: "compile [REV]", Short: "Show the prompt that a model would receive",
		Long: `Show the prompt that a model would receive at a revision (default HEAD). With --until,
show the prompt as it was at that time. --explain lists for each commit whether it is
included, and by which rule. --for prints the request body for a dialect or a provider.
Without --for, the prompt includes what the provider in the settings requires, if a
provider is set.`,
		Example: `  tract compile
  tract compile try-2 --include-reasoning
  tract compile --explain --budget 8000
  tract compile --until yesterday
  tract compile --for anthropic/claude-sonnet-4-5 | jq .messages`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.compile(ctx, o, id) }),
	}
	o.promptFlags.addFlags(cmd)
	f := cmd.Flags()
	timeFlag(cmd, &o.until, "until", "show the prompt as it was at this `time`, such as yesterday")
	f.StringVar(&o.target, "for", "", "print the request body for a DIALECT or provider, with /MODEL")
	a.choiceFlag(cmd, &o.style, "format", "text, or json for the provider-neutral form", "text", "json")
	f.BoolVar(&o.explain, "explain", false, "list every commit with its priority and the reason")
	a.completeFlag(cmd, "for", completeWords(providers.Names()...))
	return cmd
}

// libraryOptions returns the options of the library that the flags ask for.
func (o *compileOptions) libraryOptions(a *app) (opts tract.CompileOptions, err error) {
	if o.target == "" {
		opts, err = a.configuredCompileOptions()
	} else if target, targetErr := parseTarget(o.target); targetErr == nil {
		opts = withTarget(target, opts)
	} else {
		err = targetErr
	}
	flags := o.compileOptions()
	opts.Budget, opts.IncludeReasoning, opts.Until = flags.Budget, flags.IncludeReasoning, o.until
	return opts, err
}

// configuredCompileOptions returns the options with the current settings and, if one is set, their
// provider, whose rules affect the prompt.
func (a *app) configuredCompileOptions() (tract.CompileOptions, error) {
	set, err := a.settingsChangedSinceOpen()
	if err != nil {
		return tract.CompileOptions{}, err
	}
	opts := tract.CompileOptions{Settings: set}
	if client, err := a.client(); err == nil {
		opts.Target = client
	}
	return opts, nil
}

func (a *app) compile(ctx context.Context, o *compileOptions, id objects.ID) error {
	opts, err := o.libraryOptions(a)
	if err != nil {
		return err
	}
	asJSON := a.json || o.style == "json"
	if o.target != "" && !asJSON && !o.explain {
		return a.printRequest(ctx, id.String(), opts)
	}
	p, err := a.repo.Compile(ctx, id.String(), opts)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		return format.Encode(a.out, format.PromptJSON(p, o.target))
	case o.explain:
		return a.explain(ctx, p)
	}
	return a.printPaged(func(out *format.Printer) {
		out.Prompt(p)
		out.Tokens(p.Tokens)
	})
}

// explain shows why each commit goes into a prompt or stays out.
func (a *app) explain(ctx context.Context, p *compile.Prompt) error {
	if err := a.loadSkipped(ctx, p); err != nil {
		return err
	}
	return a.printPaged(func(out *format.Printer) {
		out.Explain(p)
		out.Tokens(p.Tokens)
		out.Scale(p.Scale)
	})
}

// loadSkipped loads the content of blocks that are left out of the prompt, which compiling does
// not load.
func (a *app) loadSkipped(ctx context.Context, p *compile.Prompt) error {
	p.Entries = slices.Clone(p.Entries) // prompts share theirs
	var list []*compile.Entry
	for i := range p.Entries {
		list = append(list, &p.Entries[i])
	}
	return compile.Load(ctx, a.repo.Store(), list...)
}

// printRequest prints the body of a request, and warns if it would be refused.
func (a *app) printRequest(ctx context.Context, rev string, opts tract.CompileOptions) error {
	req, err := a.repo.Request(ctx, rev, opts.Target, requestOptions(opts))
	if err != nil {
		return err
	}
	if err := a.writeTerminalSafeJSON(append(req.Body, '\n')); err != nil {
		return err
	}
	problems, err := a.repo.Check(ctx, rev, opts.Target, requestOptions(opts))
	if err != nil {
		return err
	}
	for _, found := range problems {
		a.warn(found)
	}
	return nil
}

// requestOptions returns the request options that correspond to compile options.
func requestOptions(o tract.CompileOptions) tract.RequestOptions {
	return tract.RequestOptions{Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Until: o.Until}
}

// withTarget returns opts with a target. The target's model takes precedence over the model in the
// settings.
func withTarget(target llm.Target, opts tract.CompileOptions) tract.CompileOptions {
	opts.Target = target
	if model := target.Address().Model; model != "" {
		opts.Settings = map[string]string{"model": model}
	}
	return opts
}

// parseTarget returns the target for the text "DIALECT[/MODEL]" of --for. A provider's name may be
// used instead of a dialect.
func parseTarget(name string) (*providers.Client, error) {
	provider, model, _ := strings.Cut(name, "/")
	client, err := providers.Open(provider, providers.Config{Model: model})
	if err != nil {
		return nil, fmt.Errorf("--for %q: %w", name, err)
	}
	return client, nil
}
