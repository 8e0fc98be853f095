package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
)

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show HEAD, the size of the prompt and what is pending",
		Long: `Show HEAD, the tokens of its prompt, tool calls without a result, rescued responses,
reasoning budgets, and how much reasoning is older than the setting reasoning.ttl. Tokens
are estimated from sizes, multiplied by a factor that is derived from the usage that the
last responses reported.

If the prompt is damaged, status shows what is known, and the exit code is 5.`,
		Example: "  tract status\n  tract status --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

type statusJSON struct {
	Head    objects.ID     `json:"head,omitzero"`
	Branch  string         `json:"branch,omitempty"`
	Commits uint64         `json:"commits"`
	Tokens  compile.Tokens `json:"tokens"`
	Pending []pendingJSON  `json:"pending,omitempty"`
	Rescued []string       `json:"rescued,omitempty"`
	Store   storeJSON      `json:"store"`
	Budget  budgetJSON     `json:"budget"`
	Budgets []budgetJSON   `json:"budgets,omitempty"` // of some models

	Expired *expiredReasoning `json:"expired,omitempty"` // when reasoning.ttl is set

	Scale *compile.Scale `json:"scale,omitempty"` // of the tokens, when a response reported its input

	Damaged string `json:"damaged,omitempty"` // why the prompt cannot be read

	spent  []tract.BudgetUsage
	damage error
}

type pendingJSON struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Commit objects.ID `json:"commit"`
}

type storeJSON struct {
	Engine string `json:"engine"`
	Path   string `json:"path,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// budgetJSON is the use of one reasoning budget.
type budgetJSON struct {
	Models    string `json:"models,omitempty"` // pattern of the models it is for
	Used      int64  `json:"used"`
	Limit     int64  `json:"limit,omitempty"`
	Warn      bool   `json:"warn,omitempty"`
	Estimated bool   `json:"estimated,omitempty"`
}

func newBudgetJSON(s tract.BudgetUsage) budgetJSON {
	return budgetJSON{Models: s.Models, Used: s.Used, Limit: s.Limit, Warn: s.Warn, Estimated: s.Estimated}
}

func (a *app) status(ctx context.Context) error {
	s, err := a.findStatus(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return cmp.Or(format.Encode(a.out, s), s.damage)
	}
	p := a.printer()
	p.Line(s.headLine())
	switch {
	case s.damage != nil:
		p.Text("The prompt is damaged: " + p.Warn(s.Damaged) + "\n")
	case !s.Head.IsZero():
		p.Tokens(s.Tokens)
	}
	for _, c := range s.Pending {
		p.Line("Pending tool call: " + c.Name + " (" + c.ID + "); " + toolResultCommand(c.ID, "-F -"))
	}
	for _, name := range s.Rescued {
		p.Line("Rescued response: tract rescue show " + shellQuote(name))
	}
	s.printBudgets(p)
	if s.Expired != nil && s.Expired.Blocks > 0 {
		p.Text(s.Expired.String() + ", which tract gc --prune purges\n")
	}
	p.Line("Store: " + s.Store.Engine + " " + s.Store.Path + ", " + kib(s.Store.Bytes))
	if s.Head.IsZero() {
		a.info("%s", a.emptyBranchHint(ctx))
	}
	return cmp.Or(p.Err(), s.damage)
}

func (s *statusJSON) headLine() string {
	switch {
	case s.Branch == "":
		return "HEAD is detached at " + s.Head.Short()
	case s.Head.IsZero():
		return "On branch " + s.Branch + ", no commits yet"
	case s.Commits == 0: // its header cannot be read
		return "On branch " + s.Branch + " at " + s.Head.Short()
	}
	return "On branch " + s.Branch + " at " + s.Head.Short() + ", " + count(s.Commits, "commit")
}

func (s *statusJSON) printBudgets(p *format.Printer) {
	for _, spent := range s.spent {
		switch line := budgetLine(spent); {
		case spent.Limit == 0:
		case spent.Warn:
			p.Line(p.Warn(line))
		default:
			p.Line(line)
		}
	}
}

func (a *app) findStatus(ctx context.Context) (*statusJSON, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	s := &statusJSON{Store: a.storeStatus(ctx)}
	if s.Branch, err = a.branchOfFlagOrHead(ctx); err != nil {
		return nil, err
	}
	if s.Branch != "" {
		s.Head, err = repo.Branch(s.Branch).Tip(ctx)
	} else {
		s.Head, err = a.resolve(ctx, "HEAD")
	}
	if err != nil {
		return nil, err
	}
	if s.Rescued, err = rescueNames(ctx, repo); err != nil {
		return nil, err
	}
	if s.Expired, err = a.findExpiredReasoning(ctx); err != nil && !errors.Is(err, objects.ErrCorrupt) { // which the prompt tells
		return nil, err
	}
	if s.Head.IsZero() {
		return s, nil
	}
	opts, err := a.configuredCompileOptions()
	if err != nil {
		return nil, err
	}
	p, err := repo.Compile(ctx, s.Head.String(), opts)
	if errors.Is(err, objects.ErrCorrupt) {
		return s, a.fillDamagedStatus(ctx, s, err)
	}
	if err != nil {
		return nil, err
	}
	s.Tokens, s.Commits = p.Tokens, uint64(len(p.Entries))
	if p.Scale.Responses > 0 {
		s.Scale = &p.Scale
	}
	s.Pending = mapSlice(p.Pending, func(c compile.Pending) pendingJSON { return pendingJSON{c.Call.CallID, c.Call.Name, c.Commit} })
	return s, a.fillBudgetStatus(ctx, s)
}

// fillDamagedStatus fills in what is known without the prompt.
func (a *app) fillDamagedStatus(ctx context.Context, s *statusJSON, why error) error {
	s.damage, s.Damaged = why, format.Line(why.Error())
	if c, err := a.repo.Show(ctx, s.Head.String()); c != nil {
		s.Commits = c.Depth + 1
	} else if !errors.Is(err, objects.ErrCorrupt) {
		return err
	}
	err := a.fillBudgetStatus(ctx, s)
	if errors.Is(err, objects.ErrCorrupt) { // of the same history: Damage has it
		err = nil
	}
	return err
}

// fillBudgetStatus adds how much reasoning the session has used.
func (a *app) fillBudgetStatus(ctx context.Context, s *statusJSON) (err error) {
	if s.Branch == "" || !hasReasoningBudget(*a.loaded) && !a.json { // to count takes a look at every reply
		return nil
	}
	if s.spent, err = a.repo.Branch(s.Branch).BudgetUsage(ctx, nil); err != nil {
		return err
	}
	for i, spent := range s.spent {
		if i == 0 {
			s.Budget = newBudgetJSON(spent)
		} else {
			s.Budgets = append(s.Budgets, newBudgetJSON(spent))
		}
	}
	return nil
}

// hasReasoningBudget reports whether a reasoning budget is set.
func hasReasoningBudget(v settings.Values) bool {
	return v.Int("reasoning.budget") > 0 || len(v.Budgets()) > 0
}

func (a *app) storeStatus(ctx context.Context) storeJSON {
	if server := a.location.server; server != "" {
		s := storeJSON{Engine: "postgres", Path: server}
		if m, ok := objects.As[objects.Maintainer](a.repo.Store()); ok {
			_, s.Bytes, _ = m.Size(ctx) // what cannot be read is not counted
		}
		return s
	}
	s := storeJSON{Engine: "bolt", Path: a.location.root}
	if scheme, _, ok := strings.Cut(a.location.url, ":"); ok && a.location.root == "" {
		s.Engine = scheme
	}
	if s.Path == "" {
		return s
	}
	_ = filepath.WalkDir(s.Path, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is not counted
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				s.Bytes += info.Size()
			}
		}
		return nil
	})
	return s
}
