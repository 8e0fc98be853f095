package main

import (
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
)

type grepOptions struct {
	all, ignoreCase, nameOnly, jsonl, fixed bool
	kinds                                   []string
	limit                                   int
}

func newGrep(a *app) *cobra.Command {
	o := &grepOptions{}
	cmd := &cobra.Command{
		Use: "grep RE [REV]", Short: "Search the text of all blocks",
		Long: `Search all blocks of a history for lines that match a regular expression: messages,
reasoning, tool calls and their results, edits, and the reasons of annotations. Matches are
printed as they are found, newest first. The exit code is 1 if nothing matches.`,
		Example: `  tract grep deadline
  tract grep -i 'rate.?limit' --all --kind tool-result
  tract grep -F 'os.Exit(1)' main~100
  tract grep TODO -l`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.grep(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "search all branches, tags and rescued responses")
	f.StringSliceVar(&o.kinds, "kind", nil, "only these kinds of block")
	f.BoolVarP(&o.ignoreCase, "ignore-case", "i", false, "ignore case")
	f.BoolVarP(&o.fixed, "fixed-strings", "F", false, "RE is a text, not a regular expression")
	f.BoolVarP(&o.nameOnly, "name-only", "l", false, "only list the commits")
	limitFlag(cmd, &o.limit, "stop after this many lines")
	f.BoolVar(&o.jsonl, "jsonl", false, "write one JSON value per line")
	a.completeFlag(cmd, "kind", completeWords(kindNames()...))
	return cmd
}

// query returns the pattern and the options of the search.
func (o *grepOptions) query(args []string) (pattern *regexp.Regexp, g inspect.GrepOptions, err error) {
	g.First = o.nameOnly
	if o.all && len(args) > 1 {
		return nil, g, usageError("both --all and a revision given: use one")
	}
	expression := args[0]
	if o.fixed {
		expression = regexp.QuoteMeta(expression)
	}
	if _, err := regexp.Compile(expression); err != nil {
		return nil, g, usageError("%q: %s", args[0], strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if o.ignoreCase {
		expression = "(?i)" + expression
	}
	for _, name := range o.kinds {
		k, err := content.ParseKind(name)
		if err != nil {
			return nil, g, usageError("--%s", err)
		}
		g.Kinds = append(g.Kinds, k)
	}
	return regexp.MustCompile(expression), g, nil
}

func (a *app) grep(ctx context.Context, o *grepOptions, args []string) error {
	pattern, g, err := o.query(args)
	if err != nil {
		return err
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if !o.all {
		id, err := a.resolve(ctx, revOrHead(args[1:]))
		if err != nil {
			return err
		}
		g.Revs = []string{id.String()}
	}
	found := 0
	matches := func(yield func(inspect.Match, error) bool) {
		for m, damaged := range inspect.Grep(ctx, repo, pattern, g) {
			if err := a.damage.collectDamage(damaged); err != nil {
				yield(m, err)
				return
			}
			if damaged != nil {
				continue
			}
			if found++; !yield(m, nil) || found == o.limit {
				return
			}
		}
	}
	err = emitList(a, o.jsonl, matches, format.MatchJSON, o.print)
	if err == nil && found == 0 {
		err = negativeAnswer()
	}
	return err
}

func (o *grepOptions) print(p *format.Printer, m inspect.Match) {
	if o.nameOnly {
		p.Log(format.Commit{Commit: m.Commit}, format.LogStyle{Oneline: true})
		return
	}
	p.Match(m)
}
