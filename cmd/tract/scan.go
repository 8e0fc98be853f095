package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/maintain"
)

type scanOptions struct {
	all, list bool
	rules     []string
}

func newScan(a *app) *cobra.Command {
	o := &scanOptions{}
	cmd := &cobra.Command{
		Use: "scan [REV|A..B]", Short: "Find secrets in the store",
		Long: `Find keys, tokens and passwords in a history: in blocks, edits, reasons and labels, in the
origins of blocks, in the settings of requests, and in the definitions of tools. Findings
are shown masked, newest first; text that several commits share is shown once. The exit
code is 1 if a secret is found.

--all searches everything that a ref leads to or ever led to: branches, tags, rescued
responses, and former positions of moved or deleted branches. It also searches the names
of branches and tags, and the descriptions of branches.

A finding marked as under a seal is in text that the provider signed. While the tool loop
is open, the provider needs that text unchanged.

scan changes nothing: tract purge --secrets removes what it finds. The secrets.mask
setting controls what is masked before it is stored.`,
		Example: `  tract scan
  tract scan --all --json
  tract scan main~20..main --rule github,aws-id
  tract scan --list-rules`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.scan(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "search everything that a ref leads to or ever led to")
	a.secretRuleFlag(cmd, &o.rules, "only findings of these rules")
	f.BoolVar(&o.list, "list-rules", false, "list the rules")
	return cmd
}

func ruleNames() []string {
	return mapSlice(secrets.Rules(), func(r secrets.Rule) string { return r.Name })
}

type ruleJSON struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func (a *app) scan(ctx context.Context, o *scanOptions, args []string) error {
	if o.all && len(args) > 0 {
		return usageError("both --all and a revision given: use one")
	}
	if err := checkRules(o.rules); err != nil {
		return err
	}
	if o.list {
		return a.listRules()
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	s := maintain.ScanOptions{Rules: o.rules}
	if !o.all {
		if s.Rev, err = a.resolveRange(ctx, revOrHead(args)); err != nil {
			return err
		}
	}
	commits := uint64(0)
	step, end := a.startProgress("scanning")
	s.Progress = func(done, total int64) {
		if commits = uint64(done); step != nil {
			step(done, total)
		}
	}
	var list []format.Secret
	for l, damaged := range maintain.Scan(ctx, repo, s) {
		if damaged == nil {
			list = append(list, format.Secret{Leak: l})
		} else if err = a.damage.collectDamage(damaged); err != nil {
			break
		}
	}
	if end(); err != nil {
		return err
	}
	if err := a.printSecrets(list, commits); err != nil || len(list) == 0 {
		return err
	}
	return negativeAnswer()
}

// secretRuleFlag adds the flag --rule, which selects rules that find secrets.
func (a *app) secretRuleFlag(cmd *cobra.Command, rules *[]string, help string) {
	cmd.Flags().StringSliceVar(rules, "rule", nil, help)
	a.completeFlag(cmd, "rule", completeWords(ruleNames()...))
}

// checkRules returns an error for rules that do not exist.
func checkRules(rules []string) error {
	for _, name := range rules {
		if !slices.Contains(ruleNames(), name) {
			return withHint(usageError("--rule %q: unknown rule", name), "tract scan --list-rules lists them")
		}
	}
	return nil
}

func (a *app) printSecrets(list []format.Secret, commits uint64) error {
	if a.json {
		return format.Encode(a.out, mapSlice(list, format.SecretJSON))
	}
	err := a.printPaged(func(p *format.Printer) {
		for _, s := range list {
			p.Secret(s)
		}
	})
	a.info("%s in %s", count(len(list), "secret"), count(commits, "commit"))
	return err
}

func (a *app) listRules() error {
	cells := func(r secrets.Rule) []string { return []string{r.Name, r.Doc} }
	rules := mapSlice(secrets.Rules(), func(r secrets.Rule) ruleJSON { return ruleJSON(r) })
	return a.emitPage(rules, func(p *format.Printer) { p.Table(mapSlice(secrets.Rules(), cells)) })
}
