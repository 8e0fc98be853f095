package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

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

// reasoningFlags holds the flags that select blocks of reasoning.
type reasoningFlags struct {
	commitFilter
	session, model, source, seal string
	turn, limit                  int
}

func (o *reasoningFlags) addFlags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "only reasoning that was committed on this branch")
	f.StringVar(&o.model, "model", "", "only reasoning of models with this name; * matches anything")
	o.commitFilter.addFlags(cmd, "reasoning")
	f.StringVar(&o.source, "source", "", "only reasoning from this field of a response, such as reasoning_content")
	seals := []string{"signature", "encrypted", "redacted", "opaque", "any", "none"}
	a.choiceFlag(cmd, &o.seal, "seal", "only reasoning with this seal: "+orList(seals), seals...)
	f.Var((*limit)(&o.turn), "turn", "only reasoning of the turn with this number")
	limitFlag(cmd, &o.limit, "show at most this many, the newest ones")
	a.completeFlag(cmd, "session", a.completeBranches)
}

// matches reports whether the flags select a block.
func (o *reasoningFlags) matches(t *inspect.ReasoningBlock) bool {
	origin := t.Origin()
	r, _ := t.Commit.Block.(content.Reasoning)
	return (o.session == "" || origin.Session == o.session) && (o.model == "" || settings.Match(o.model, origin.Model)) &&
		(o.turn == 0 || t.Turn == o.turn) && (o.source == "" || r.Source == o.source) &&
		(o.seal == "" || o.matchesSeal(r.Form().Seal)) && o.commitFilter.matches(t.Commit)
}

func (o *reasoningFlags) matchesSeal(seal content.Seal) bool {
	if seal.IsZero() {
		return o.seal == "none"
	}
	return o.seal == "any" || o.seal == seal.Type.String()
}

func newReasoning(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reasoning", Short: "Commit, list, show, export or count reasoning",
		Long: `Commit a block of reasoning, or list, show, export or count the reasoning that models wrote.`,
		Example: `  tract reasoning list -n 20
  tract reasoning show HEAD
  tract reasoning add "The question is about scattering, not about reflection."`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newReasoningAdd(a), newReasoningList(a), newReasoningShow(a), newReasoningExport(a), newReasoningStats(a))
	return cmd
}

func newReasoningList(a *app) *cobra.Command {
	o, jsonl := &reasoningFlags{}, false
	cmd := &cobra.Command{
		Use: "list [REV]", Short: "List reasoning, newest first",
		Long: `List reasoning, newest first: in the history of a revision, of the branch that -b
names, or of all branches, tags and rescued responses. A block that several branches
share is listed once.`,
		Example: `  tract reasoning list -n 20
  tract reasoning list --session main --model 'claude-*' --since yesterday
  tract reasoning list HEAD --turn 3
  tract reasoning list --grep 'off by one' --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.listReasoning(cmd.Context(), o, args, jsonl) },
	}
	o.addFlags(a, cmd)
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "write one JSON value per line")
	return cmd
}

func newReasoningExport(a *app) *cobra.Command {
	o := &reasoningFlags{}
	cmd := &cobra.Command{
		Use: "export [REV]", Short: "Write reasoning for other programs",
		Long: `Write reasoning in a form for other programs: one JSON value per line, newest first, as
tract reasoning list --jsonl does.`,
		Example: "  tract reasoning export --since 7d > reasoning.jsonl",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.listReasoning(cmd.Context(), o, args, true) },
	}
	o.addFlags(a, cmd)
	return cmd
}

// listReasoning prints the selected reasoning; with jsonl, as one JSON value per line.
func (a *app) listReasoning(ctx context.Context, o *reasoningFlags, args []string, jsonl bool) error {
	walk, _, err := a.walkReasoning(ctx, o, args, a.json || jsonl)
	if err != nil {
		return err
	}
	return emitList(a, jsonl, walk, format.ReasoningJSON, (*format.Printer).Reasoning)
}

func newReasoningShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show [REV]", Short: "Show reasoning in full",
		Long: `Show one block of reasoning in full. If REV is another block of a response, show the
reasoning that precedes it in that response.`,
		Example: "  tract reasoning show HEAD\n  tract reasoning show toolu_01 --json",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showReasoning(cmd.Context(), revOrHead(args)) },
	}
}

// tokenScale returns the factor that converts estimates to tokens, for a revision or HEAD. It is
// the zero Scale if the prompt is damaged or missing.
func (a *app) tokenScale(ctx context.Context, revs []string) (compile.Scale, error) {
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

// walkReasoning returns the reasoning that the flags select, with turn numbers if turnNumbers is
// set, and the factor for its tokens.
func (a *app) walkReasoning(ctx context.Context, o *reasoningFlags, args []string, turnNumbers bool) (walk iter.Seq2[format.Reasoning, error], scale compile.Scale, err error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, compile.Scale{}, err
	}
	revs, err := a.revOrBranchFlag(ctx, args)
	if err != nil {
		return nil, compile.Scale{}, err
	}
	scale, err = a.tokenScale(ctx, revs)
	return func(yield func(format.Reasoning, error) bool) {
		shown := 0
		for t, damaged := range inspect.Reasoning(ctx, repo, inspect.ReasoningOptions{Revs: revs, Turns: turnNumbers || o.turn > 0}) {
			if err := a.damage.collectDamage(damaged); err != nil {
				yield(format.Reasoning{}, err)
				return
			}
			if !o.matches(t) {
				continue
			}
			if !yield(decorateReasoning(t, scale, damaged), nil) {
				return
			}
			if shown++; shown == o.limit {
				return
			}
		}
	}, scale, err
}

// revOrBranchFlag returns the commit of the only argument, or else of --branch; none if neither is
// given, which means all histories.
func (a *app) revOrBranchFlag(ctx context.Context, args []string) (revs []string, err error) {
	if len(args) == 0 && a.branch == "" {
		return nil, nil
	}
	rev := refs.Heads + a.branch
	if len(args) > 0 {
		rev = args[0]
	}
	id, err := a.resolve(ctx, rev)
	return []string{id.String()}, err
}

func decorateReasoning(t *inspect.ReasoningBlock, scale compile.Scale, damaged error) format.Reasoning {
	return format.Reasoning{ReasoningBlock: t, Tokens: scale.Tokens(t.Estimate), Damaged: damaged}
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
	scale, err := a.tokenScale(ctx, revs)
	if err != nil {
		return err
	}
	var found []format.Reasoning
	for t, damaged := range inspect.Reasoning(ctx, a.repo, inspect.ReasoningOptions{Revs: revs, Turns: a.json}) {
		if damaged != nil && t == nil {
			return damaged
		}
		own := t.Commit.ID == id
		if !own && (c.Kind == content.KindReasoning || c.OriginID.IsZero() || t.Commit.OriginID != c.OriginID) {
			break
		}
		if err := a.damage.collectDamage(damaged); err != nil {
			return err
		}
		found = append([]format.Reasoning{decorateReasoning(t, scale, damaged)}, found...)
		if own {
			break
		}
	}
	if len(found) == 0 {
		err := &refs.UnknownError{Rev: rev, Why: fmt.Sprintf("this %s has no reasoning before it", c.Kind)}
		return withHint(err, "tract reasoning list shows reasoning")
	}
	return a.emitPage(mapSlice(found, format.ReasoningJSON), func(p *format.Printer) {
		for _, t := range found {
			p.WholeReasoning(t)
		}
	})
}
