package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/secrets"
)

type scanOptions struct {
	where
	list, fix, dry, yes bool
}

func newScan(a *app) *cobra.Command {
	o := &scanOptions{}
	cmd := &cobra.Command{
		Use: "scan [REV|A..B]", Short: "Find secrets in what is stored",
		Long: `Find keys, tokens and passwords in a history: in what was said, thought and done,
in edits, reasons and labels, in what is known of where it came from, in how models
were asked, in the definitions of tools. What is found is shown with a mask in its place, newest
first; words that several commits share are shown once. The exit code is 1 when
something is found.

With --all, everything that a ref leads to is looked at: branches, tags, replies
that could not land, and what a branch that was moved or deleted had; and the names
of branches and tags, and what branches are said to be about.

A secret under a seal stands in words that a provider signed. While its tool loop
is open the provider wants them back as they were.

With --fix, masks take the place of the secrets, as edits on every branch where the
words count, and the old words are taken out of every file of the store, as tract
purge does. Labels, descriptions and definitions of tools that have one go whole. A
seal goes with its words; where an open tool loop needs it they are left. Where words
came from, how a model was asked, and the names of authors, branches and tags are never
erased, not even by purge. What is left is named, and the exit code is 1 when there is
any. It cannot be undone: it asks on a terminal, and elsewhere refuses without --yes. A
secret that was sent somewhere has to be changed.

What is masked before it is stored says the setting secrets.mask.`,
		Example: `  tract scan
  tract scan --all --json
  tract scan main~20..main --rule github,aws-id
  tract scan --fix --dry-run
  tract scan --fix --all --yes
  tract scan --list-rules`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.scan(cmd, o, args) },
	}
	f := cmd.Flags()
	o.flags(a, cmd, "look at everything that a ref leads to or ever led to", "only what these rules find")
	f.BoolVar(&o.fix, "fix", false, "put masks in the place of what is found, and take the words away, for good")
	f.BoolVar(&o.dry, "dry-run", false, "with --fix: only say what would be done")
	f.BoolVarP(&o.yes, "yes", "y", false, "with --fix: "+noQuestion)
	f.BoolVar(&o.list, "list-rules", false, "list the rules")
	cmd.ValidArgsFunction = a.completeFirstRevision
	return cmd
}

func ruleNames() []string {
	var names []string
	for _, r := range secrets.Rules() {
		names = append(names, r.Name)
	}
	return names
}

// ruleJSON is a rule for programs.
type ruleJSON struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func (a *app) scan(cmd *cobra.Command, o *scanOptions, args []string) error {
	switch {
	case o.list && o.fix:
		return usage(cmd, "both --list-rules and --fix given: give one")
	case (o.dry || o.yes) && !o.fix:
		return usage(cmd, "--dry-run and --yes are for --fix")
	}
	s, err := o.look(cmd, args)
	if err != nil {
		return err
	}
	if o.list {
		return a.listRules()
	}
	list, looked, err := a.findSecrets(cmd.Context(), &s, o.fix && !o.dry)
	var hurt damage
	if !o.fix { // what is found elsewhere is shown; mended is only a store that is whole
		err = hurt.met(err)
	}
	if err != nil {
		return err
	}
	if o.fix {
		return a.erasureError(a.fixSecrets(cmd.Context(), o, s, list, looked))
	}
	return hurt.told(a.showSecrets(secretsOf(list), looked))
}

// where says where secrets are looked for, and which.
type where struct {
	all   bool
	rules []string
}

// flags is the flags of it. all is what --all says it looks at.
func (w *where) flags(a *app, cmd *cobra.Command, all, rule string) {
	cmd.Flags().BoolVar(&w.all, "all", false, all)
	cmd.Flags().StringSliceVar(&w.rules, "rule", nil, rule)
	a.completeFlag(cmd, "rule", cobra.FixedCompletions(ruleNames(), cobra.ShellCompDirectiveNoFileComp))
}

// look is what is to be looked at. A revision is resolved when the store is opened.
func (w *where) look(cmd *cobra.Command, args []string) (s tract.Scan, err error) {
	if w.all && len(args) > 0 {
		return s, usage(cmd, "both --all and a revision given: give one")
	}
	for _, name := range w.rules {
		if !slices.Contains(ruleNames(), name) {
			return s, hinted(usage(cmd, "--rule %q: there is no such rule", name), "tract scan --list-rules lists them")
		}
	}
	s.Rules = w.rules
	if !w.all {
		s.Rev = orHead(args)
	}
	return s, nil
}

// findSecrets lists the secrets that are stored, and in how many commits it looked; with
// a *[tract.DamagedError] when some could not be read. The revision is another name for the same afterwards, which no new commit changes.
func (a *app) findSecrets(ctx context.Context, s *tract.Scan, write bool) (list []tract.Leak, looked uint64, err error) {
	repo, err := a.open(ctx, write)
	if err != nil {
		return nil, 0, err
	}
	if s.Rev != "" {
		if s.Rev, err = a.spec(ctx, s.Rev); err != nil {
			return nil, 0, err
		}
	}
	step, end := a.progress("scanning")
	defer end()
	s.Progress = func(done, total int64) {
		if looked = uint64(done); step != nil {
			step(done, total)
		}
	}
	var hurt damage
	for l, err := range repo.Scan(ctx, *s) {
		if err != nil {
			if err := hurt.met(err); err != nil {
				return nil, looked, err
			}
			continue
		}
		list = append(list, l)
	}
	return list, looked, hurt.told(nil)
}

func secretsOf(list []tract.Leak) []format.Secret {
	all := make([]format.Secret, len(list))
	for i, l := range list {
		all[i].Leak = l
	}
	return all
}

func secretsJSON(list []format.Secret) []any {
	values := []any{}
	for _, s := range list {
		values = append(values, format.SecretJSON(s))
	}
	return values
}

func (a *app) showSecrets(list []format.Secret, looked uint64) error {
	var err error
	if a.json {
		err = format.Encode(a.out, secretsJSON(list))
	} else {
		err = a.page(func(p *format.Printer) error {
			for _, s := range list {
				p.Secret(s)
			}
			return nil
		})
		a.note("%s in %s", count(uint64(len(list)), "secret"), count(looked, "commit"))
	}
	if err == nil && len(list) > 0 {
		return no()
	}
	return err
}

func (a *app) listRules() error {
	rules := []ruleJSON{}
	var rows [][]string
	for _, r := range secrets.Rules() {
		rules = append(rules, ruleJSON(r))
		rows = append(rows, []string{r.Name, r.Doc})
	}
	if a.json {
		return format.Encode(a.out, rules)
	}
	return a.page(func(p *format.Printer) error {
		p.Table(rows)
		return nil
	})
}
