package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
)

// reasoningFlags is what the flags of the commands on thoughts say.
type reasoningFlags struct {
	session, model, since, until, grep, source, seal string
	turn, limit                                      int
	jsonl                                            bool
	as                                               string // of export
	by                                               string // of stats
}

func (o *reasoningFlags) register(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "only thoughts that were committed on this branch")
	f.StringVar(&o.model, "model", "", "only thoughts of models of this name, in which * stands for anything")
	f.StringVar(&o.since, "since", "", "only thoughts from this time on, such as yesterday")
	f.StringVar(&o.until, "until", "", "only thoughts up to this time")
	f.StringVar(&o.grep, "grep", "", "only thoughts that say something that this matches")
	f.StringVar(&o.source, "source", "", "only thoughts from this field of the response, such as reasoning_content")
	f.StringVar(&o.seal, "seal", "", "only thoughts with this seal: signature, encrypted, redacted, opaque, any or none")
	f.IntVar(&o.turn, "turn", 0, "only thoughts of the turn of this number")
	f.IntVarP(&o.limit, "max-count", "n", 0, "at most so many, the newest")
	cmd.ValidArgsFunction = a.completeFirstRevision
	a.completeFlag(cmd, "session", a.completeBranches)
	a.completeFlag(cmd, "seal", cobra.FixedCompletions(seals, cobra.ShellCompDirectiveNoFileComp))
}

var seals = []string{"signature", "encrypted", "redacted", "opaque", "any", "none"}

func newReasoning(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reasoning", Short: "Commit thoughts, and look at those of models",
		Long: `Commit a thought, list and show what models thought, write it for other programs,
and count it.`,
		Example: `  tract reasoning list -n 20
  tract reasoning show HEAD
  tract reasoning add "The question is about scattering, not about reflection."`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &reasoningFlags{}
	list := &cobra.Command{
		Use: "list [REV]", Short: "List thoughts, newest first",
		Long: `List thoughts, newest first: of a revision, of the branch that -b names, or of
all branches, tags and replies that could not land. A thought that several
branches share comes once.`,
		Example: `  tract reasoning list -n 20
  tract reasoning list --session main --model 'claude-*' --since yesterday
  tract reasoning list HEAD --turn 3
  tract reasoning list --grep 'off by one' --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.listReasoning(cmd, o, args) },
	}
	o.register(a, list)
	list.Flags().BoolVar(&o.jsonl, "jsonl", false, "write JSON, a thought a line")
	show := &cobra.Command{
		Use: "show [REV]", Short: "Show a thought, or those before a reply, with all words",
		Long: `Show one thought with all its words. A revision that is another block of a reply
gives the thoughts of that reply before it.`,
		Example: "  tract reasoning show HEAD\n  tract reasoning show toolu_01 --json",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: a.completeFirstRevision,
		RunE: func(cmd *cobra.Command, args []string) error { return a.showReasoning(cmd.Context(), revOrHead(args)) },
	}
	export := &cobra.Command{
		Use: "export [REV]", Short: "Write thoughts for other programs",
		Long: `Write thoughts for other programs, newest first: as list does, one JSON value a
line, or as OpenTelemetry spans in OTLP/JSON, one reply a line, with the gen_ai
attributes (which are still in development there). Seals are named, not given.`,
		Example: `  tract reasoning export > thoughts.jsonl
  tract reasoning export --format otel --since 7d > spans.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.exportReasoning(cmd, o, args) },
	}
	o.register(a, export)
	export.Flags().StringVar(&o.as, "format", "jsonl", "jsonl, or otel for OpenTelemetry")
	a.completeFlag(export, "format", cobra.FixedCompletions([]string{"jsonl", "otel"}, cobra.ShellCompDirectiveNoFileComp))
	stats := &cobra.Command{
		Use: "stats [REV]", Short: "Count thoughts and their tokens",
		Long: `Count thoughts and their tokens: by estimate, as compile and status count them for
the revision, else for HEAD, and as providers reported them.`,
		Example: "  tract reasoning stats\n  tract reasoning stats --by session --since 30d --json",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.reasoningStats(cmd, o, args) },
	}
	o.register(a, stats)
	stats.Flags().StringVar(&o.by, "by", "model", "what to count by: "+strings.Join(reasoningKeys, ", "))
	a.completeFlag(stats, "by", cobra.FixedCompletions(reasoningKeys, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newReasoningAdd(a), list, show, export, stats)
	return cmd
}

// scale is what makes tokens from estimates: of a revision, else of HEAD. Where there is no
// prompt, or a damaged one, estimates stay as they are.
func (a *app) scale(ctx context.Context, revs []string) (compile.Scale, error) {
	id, err := a.resolve(ctx, revOrHead(revs))
	if err != nil {
		if len(revs) == 0 {
			err = nil
		}
		return compile.Scale{}, err
	}
	s, err := inspect.Scale(ctx, a.repo, id.String())
	if errors.Is(err, objects.ErrCorrupt) || errors.Is(err, objects.ErrNotFound) {
		err = nil
	}
	return s, err
}

// reasoningWalk is the thoughts that the flags let through, and what could not be read.
type reasoningWalk struct {
	iter.Seq2[format.Reasoning, error]
	damage damageLog
	scale  compile.Scale
}

// walkReasoning makes a walk over what the flags let through. numbered is whether turns are
// counted.
func (a *app) walkReasoning(cmd *cobra.Command, o *reasoningFlags, args []string, numbered bool) (*reasoningWalk, error) {
	ctx := cmd.Context()
	keep, err := o.filter(a, cmd)
	if err != nil {
		return nil, err
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	revs, err := a.startRevs(ctx, args)
	if err != nil {
		return nil, err
	}
	w := &reasoningWalk{}
	if w.scale, err = a.scale(ctx, revs); err != nil {
		return nil, err
	}
	w.Seq2 = func(yield func(format.Reasoning, error) bool) {
		shown := 0
		for t, damaged := range inspect.Reasoning(ctx, repo, inspect.ReasoningOptions{Revs: revs, Turns: numbered || o.turn > 0}) {
			if err := w.damage.record(damaged); err != nil {
				yield(format.Reasoning{}, err)
				return
			}
			if !keep(t) {
				continue
			}
			if !yield(withTokens(t, w.scale, damaged), nil) {
				return
			}
			if shown++; shown == o.limit {
				return
			}
		}
	}
	return w, nil
}

// startRevs is the commit that a walk over everything is limited to; none: all.
func (a *app) startRevs(ctx context.Context, args []string) ([]string, error) {
	rev := ""
	switch {
	case len(args) > 0:
		rev = args[0]
	case a.branch != "":
		rev = refs.Heads + a.branch
	default:
		return nil, nil
	}
	id, err := a.resolve(ctx, rev)
	return []string{id.String()}, err
}

func withTokens(t *inspect.ReasoningBlock, scale compile.Scale, damaged error) format.Reasoning {
	return format.Reasoning{ReasoningBlock: t, Tokens: scale.Tokens(t.Estimate), Damaged: damaged}
}

// filter reads the flags.
func (o *reasoningFlags) filter(a *app, cmd *cobra.Command) (func(*inspect.ReasoningBlock) bool, error) {
	if o.limit < 0 || o.turn < 0 {
		return nil, usageError(cmd, "a number below 0: want a count, or the number of a turn")
	}
	if o.seal != "" && !slices.Contains(seals, o.seal) {
		return nil, usageError(cmd, "--seal %q: want one of %s", o.seal, strings.Join(seals, ", "))
	}
	if _, err := a.settings(); err != nil {
		return nil, err
	}
	f := &filter{cmd: cmd}
	f.matches("--grep", o.grep, searchText)
	f.since(o.since)
	f.until(o.until)
	f.add(func(c *commit.Commit) bool { return o.seal == "" || matchesSeal(o.seal, c.Block) })
	f.add(func(c *commit.Commit) bool {
		r, ok := c.Block.(content.Reasoning)
		return o.source == "" || ok && r.Source == o.source
	})
	return func(t *inspect.ReasoningBlock) bool {
		origin := t.Origin()
		return (o.session == "" || origin.Session == o.session) && (o.model == "" || settings.Match(o.model, origin.Model)) &&
			(o.turn == 0 || t.Turn == o.turn) && f.pass(t.Commit)
	}, f.err
}

func matchesSeal(want string, b content.Block) bool {
	r, ok := b.(content.Reasoning)
	switch {
	case !ok || r.Form().Seal.IsZero():
		return want == "none"
	case want == "any":
		return true
	}
	return r.Form().Seal.Type.String() == want
}

func (a *app) listReasoning(cmd *cobra.Command, o *reasoningFlags, args []string) error {
	traces, err := a.walkReasoning(cmd, o, args, a.json || o.jsonl)
	switch {
	case err != nil:
		return err
	case o.jsonl:
		return a.reasoningLines(traces)
	case a.json:
		return a.reasoningArray(traces)
	}
	return traces.damage.result(a.pagedTo(func(out io.Writer, options format.Options) error {
		p := format.New(out, options)
		for t, err := range traces.Seq2 {
			if err != nil {
				return err
			}
			if p.Reasoning(t); p.Err() != nil {
				break
			}
		}
		return p.Err()
	}))
}

func (a *app) reasoningLines(traces *reasoningWalk) error {
	for t, err := range traces.Seq2 {
		if err != nil {
			return err
		}
		if err := format.EncodeLine(a.out, format.ReasoningJSON(t)); err != nil {
			return err
		}
	}
	return traces.damage.result(nil)
}

func (a *app) reasoningArray(traces *reasoningWalk) error {
	list := []any{}
	for t, err := range traces.Seq2 {
		if err != nil {
			return err
		}
		list = append(list, format.ReasoningJSON(t))
	}
	return traces.damage.result(format.Encode(a.out, list))
}

func (a *app) showReasoning(ctx context.Context, rev string) error {
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	c, err := commit.Read(ctx, a.repo.Store(), id)
	if err != nil {
		return err
	}
	revs := []string{id.String()}
	scale, err := a.scale(ctx, revs)
	if err != nil {
		return err
	}
	var found []format.Reasoning
	var hurt damageLog
	for t, damaged := range inspect.Reasoning(ctx, a.repo, inspect.ReasoningOptions{Revs: revs, Turns: a.json}) {
		if damaged != nil && t == nil {
			return damaged
		}
		own := t.Commit.ID == id
		if !own && (c.Kind == content.KindReasoning || c.OriginID.IsZero() || t.Commit.OriginID != c.OriginID) {
			break
		}
		if err := hurt.record(damaged); err != nil {
			return err
		}
		found = append([]format.Reasoning{withTokens(t, scale, damaged)}, found...)
		if own {
			break
		}
	}
	if len(found) == 0 {
		err := &refs.UnknownError{Rev: rev, Why: fmt.Sprintf("there is no thought in or before this %s", c.Kind)}
		return withHint(err, "tract reasoning list shows thoughts")
	}
	if a.json {
		list := []any{}
		for _, t := range found {
			list = append(list, format.ReasoningJSON(t))
		}
		return hurt.result(format.Encode(a.out, list))
	}
	return hurt.result(a.paged(func(p *format.Printer) error {
		for _, t := range found {
			p.WholeReasoning(t)
		}
		return nil
	}))
}
