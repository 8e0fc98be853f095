package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

type compressOptions struct {
	requestFlags
	file                         string
	keepReasoning, onlyReasoning bool
	label, author                string
}

func newCompress(a *app) *cobra.Command {
	o := &compressOptions{}
	cmd := &cobra.Command{
		Use: "compress [A..B|REV]", Short: "Replace a range of commits with a summary in prompts",
		Long: `Commit a summary that replaces a range of commits in every later prompt. A..B selects the
commits that B has and A does not. A single revision selects everything up to it. Without
a range, all turns except the newest are replaced. -F reads the summary from a file or
stdin; otherwise the model in the settings writes it.

Pinned blocks and instructions stay in place. Messages, tool calls with their results and
earlier summaries are never split: the range is widened instead. The replaced commits stay
in the history; tract expand restores all of them in prompts, tract annotate a single one.`,
		Example: `  tract compress 3fa2c1d..9198ae4 -F summary.md
  echo "We chose SQLite." | tract compress :/SQLite -F -
  tract compress --provider anthropic --model claude-haiku-4-5
  tract compress --only-reasoning -F reasoning.md
  tract compress :/SQLite --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compress(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "text-file", "F", "", "read the summary from this file, or from stdin with -")
	f.BoolVar(&o.keepReasoning, "keep-reasoning", false, "replace everything but reasoning")
	f.BoolVar(&o.onlyReasoning, "only-reasoning", false, "replace only reasoning")
	f.StringVar(&o.label, "label", "", "label of the commit: a line for people, never sent")
	f.StringVar(&o.author, "author", "", "author of the commit")
	o.addTarget(a, cmd)
	f.BoolVar(&o.dryRun, "dry-run", false, "only list what the summary would replace")
	cmd.MarkFlagsMutuallyExclusive("keep-reasoning", "only-reasoning")
	return cmd
}

// summaryScope returns which blocks of the range the summary replaces.
func (o *compressOptions) summaryScope() commit.SummaryScope {
	switch {
	case o.keepReasoning:
		return commit.ScopeDialogue
	case o.onlyReasoning:
		return commit.ScopeReasoning
	}
	return commit.ScopeAll
}

func (a *app) compress(ctx context.Context, o *compressOptions, args []string) error {
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	opts := tract.CompressOptions{Covers: o.summaryScope(), Label: o.label, Author: o.author, DryRun: true}
	rng := ""
	if len(args) == 1 {
		if rng, err = a.resolveRange(ctx, args[0]); err != nil {
			return err
		}
	}
	r, err := b.Compress(ctx, rng, opts)
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.printCommitsToReplace(r)
	}
	if r.Widened {
		a.info("the range is widened to %s..%s so that nothing is split", r.First.Short(), r.Last.Short())
	}
	if err := a.setSummaryTextOrClient(ctx, o, &opts); err != nil {
		return err
	}
	opts.DryRun = false
	if r, err = b.Compress(ctx, rng, opts); err != nil {
		return err
	}
	a.info("the summary replaces %s, about %d tokens; tract expand %s restores them", count(len(r.Commits), "commit"), r.Tokens, r.ID.Short())
	return a.printAppended(ctx, b, r.ID)
}

// setSummaryTextOrClient sets the text of the summary from -F or, without -F, the client of the model
// that writes it.
func (a *app) setSummaryTextOrClient(ctx context.Context, o *compressOptions, opts *tract.CompressOptions) (err error) {
	if o.file != "" {
		if opts.Text, err = (&textFlags{file: o.file}).read(ctx, a, nil, ""); err == nil {
			a.warnInvalidUTF8(opts.Text)
		}
		return err
	}
	client, ask, err := a.clientAndOptions(ctx, &o.requestFlags)
	if err != nil {
		f := classify(err)
		f.hint = "give the summary with -F FILE, or -F - for stdin; for a model: " + f.hint
		return f
	}
	opts.Client, opts.Ask = client, ask
	return nil
}

// printCommitsToReplace lists the commits that a summary would replace.
func (a *app) printCommitsToReplace(r *tract.Summary) error {
	commits := mapSlice(r.Commits, func(c *commit.Commit) format.Commit { return format.Commit{Commit: c} })
	v := struct {
		First   objects.ID `json:"first"`
		Last    objects.ID `json:"last"`
		Widened bool       `json:"widened,omitempty"`
		Tokens  int        `json:"tokens"`
		Commits []any      `json:"commits"`
	}{r.First, r.Last, r.Widened, r.Tokens, mapSlice(commits, format.CommitJSON)}
	return a.emitPage(v, func(p *format.Printer) {
		for _, c := range commits {
			p.Log(c, format.LogStyle{Oneline: true})
		}
		p.Text(fmt.Sprintf("%s, about %d tokens\n", count(len(r.Commits), "commit"), r.Tokens))
	})
}
