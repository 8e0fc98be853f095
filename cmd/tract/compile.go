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
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

type compileOptions struct {
	promptFlags
	until, to, style string
	explain          bool
}

// promptFlags is what decides on a prompt, for compile and diff.
type promptFlags struct {
	include bool
	budget  uint
}

func (o *promptFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.include, "include-reasoning", false, "send past reasoning that is left out only by default")
	cmd.Flags().UintVar(&o.budget, "budget", 0, "most tokens, by estimate; whole turns go, the oldest first")
}

func (o *promptFlags) compileOptions() tract.CompileOptions {
	return tract.CompileOptions{Budget: int(min(o.budget, math.MaxInt)), IncludeReasoning: o.include}
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.compile(cmd, o, revOrHead(args)) },
	}
	o.promptFlags.flags(cmd)
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

// compileOptions is what the flags ask for.
func (o *compileOptions) read(a *app, cmd *cobra.Command) (opts tract.CompileOptions, err error) {
	if o.style != "text" && o.style != "json" {
		return opts, usageError(cmd, "--format %q: want text or json", o.style)
	}
	opts = o.compileOptions()
	if o.until != "" {
		t, err := refs.ParseTime(o.until, time.Now())
		if err != nil {
			return opts, usageError(cmd, "--until: %s", err)
		}
		opts.Until = t
	}
	if o.to == "" {
		configured, err := a.configuredOptions()
		opts.Target, opts.Settings = configured.Target, configured.Settings
		return opts, err
	}
	target, err := targetFor(o.to)
	if err != nil {
		return opts, err
	}
	return asTarget(target, opts), nil
}

// configuredOptions is the options that compile with the settings of now, for their provider if
// they name one that can be asked: what it wants back decides on the prompt too.
func (a *app) configuredOptions() (tract.CompileOptions, error) {
	set, err := a.settingChanges()
	if err != nil {
		return tract.CompileOptions{}, err
	}
	opts := tract.CompileOptions{Settings: set}
	if client, err := a.client(); err == nil {
		opts.Target = client
	}
	return opts, nil
}

func (a *app) compile(cmd *cobra.Command, o *compileOptions, rev string) error {
	ctx := cmd.Context()
	opts, err := o.read(a, cmd)
	if err != nil {
		return err
	}
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	asJSON := a.json || o.style == "json"
	if o.to != "" && !asJSON && !o.explain {
		return a.printRequest(ctx, id.String(), opts)
	}
	p, err := a.repo.Compile(ctx, id.String(), opts)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		return format.Encode(a.out, format.PromptJSON(p, o.to))
	case o.explain:
		return a.explain(ctx, p)
	}
	return a.paged(func(pen *format.Printer) error {
		pen.Prompt(p)
		pen.Tokens(p.Tokens)
		return nil
	})
}

// explain shows why each commit goes into a prompt or stays out.
func (a *app) explain(ctx context.Context, p *compile.Prompt) error {
	if err := a.loadSkipped(ctx, p); err != nil {
		return err
	}
	return a.paged(func(pen *format.Printer) error {
		pen.Explain(p)
		pen.Tokens(p.Tokens)
		pen.Scale(p.Scale)
		return nil
	})
}

// loadSkipped reads what compiling had no need to: the words of blocks that are
// left out.
func (a *app) loadSkipped(ctx context.Context, p *compile.Prompt) error {
	p.Entries = slices.Clone(p.Entries) // prompts share theirs
	var list []*compile.Entry
	for i := range p.Entries {
		list = append(list, &p.Entries[i])
	}
	return compile.Load(ctx, a.repo.Store(), list...)
}

// printRequest writes the body of a request as it would be sent, and says why it would be
// refused.
func (a *app) printRequest(ctx context.Context, rev string, opts tract.CompileOptions) error {
	req, err := a.repo.Request(ctx, rev, opts.Target, requestOptions(opts))
	if err != nil {
		return err
	}
	if err := a.writeJSON(append(req.Body, '\n')); err != nil {
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

// requestOptions is the options of a request whose prompt is compiled with others.
func requestOptions(o tract.CompileOptions) tract.RequestOptions {
	return tract.RequestOptions{Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Until: o.Until}
}

// asTarget is the options that compile for a target. The model that it names counts
// more than that of the settings.
func asTarget(target llm.Target, opts tract.CompileOptions) tract.CompileOptions {
	opts.Target = target
	if model := target.Address().Model; model != "" {
		opts.Settings = map[string]string{"model": model}
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
