package tract

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// BudgetUsage is what the thoughts of a session have used of one budget, in tokens.
type BudgetUsage struct {
	Session   string
	Models    string // pattern of the models that are counted; empty: all
	Used      int64
	Limit     int64 // 0: there is none
	Warn      bool  // the part at which to warn is reached
	Estimated bool  // some of Used was not reported by a provider, or is still coming
}

// BudgetError says that a session has used up a budget. Nothing was sent.
type BudgetError struct{ Usage BudgetUsage }

// Error has the session and the numbers.
func (e *BudgetError) Error() string {
	of := ""
	if e.Usage.Models != "" {
		of = " on " + e.Usage.Models
	}
	return fmt.Sprintf("generate: session %s has used %d of %d reasoning tokens%s", e.Usage.Session, e.Usage.Used, e.Usage.Limit, of)
}

// BudgetUsage tells what the thoughts of the branch have used: of reasoning.budget,
// which comes first and has the sum even where there is no limit, and of each of
// reasoning.budgets. A reply counts in the session that it was committed on, so
// that a fork begins at nothing.
// Settings are laid over those of the Repo.
func (b *Branch) BudgetUsage(ctx context.Context, settings map[string]string) ([]BudgetUsage, error) {
	c := b.repo.call()
	if err := c.set(settings); err != nil {
		return nil, err
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	budgets := b.budgets(c.settings)
	if tip.IsZero() {
		return budgets, nil
	}
	if err := b.countSpent(ctx, budgets, tip); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return budgets, nil
}

// budgets is those that the settings give, with nothing used.
func (b *Branch) budgets(v settings.Values) []BudgetUsage {
	list := []BudgetUsage{{Session: b.name, Limit: int64(v.Int("reasoning.budget"))}}
	limits := v.Budgets()
	for _, pattern := range slices.Sorted(maps.Keys(limits)) {
		list = append(list, BudgetUsage{Session: b.name, Models: pattern, Limit: int64(limits[pattern])})
	}
	return list
}

// countSpent adds what the replies on a history have used.
func (b *Branch) countSpent(ctx context.Context, budgets []BudgetUsage, tip objects.ID) error {
	estimates := make([]int, len(budgets))
	for response, err := range history.Responses(ctx, b.repo.store, []objects.ID{tip}) {
		if err != nil {
			return err
		}
		origin := response.Last.Origin
		if origin.Session != b.name {
			continue
		}
		for i := range budgets {
			if s := &budgets[i]; s.counts(origin.Model) {
				s.Used += response.Tokens
				s.Estimated = s.Estimated || response.Estimated
				estimates[i] += response.Estimate
			}
		}
	}
	if slices.Max(estimates) > 0 {
		scale, err := compile.ScaleOf(ctx, b.repo.store, tip)
		if err != nil && !history.IsDamage(err) { // of what is damaged the estimates stay as they are
			return err
		}
		for i := range budgets {
			budgets[i].Used += int64(scale.Tokens(estimates[i]))
		}
	}
	warn(budgets)
	return nil
}

// counts reports whether a budget is of a model.
func (s *BudgetUsage) counts(model string) bool {
	return s.Models == "" || settings.Match(s.Models, model)
}

// warnAt is the part of a budget at which to warn.
const warnAt = 0.8

func warn(budgets []BudgetUsage) {
	for i := range budgets {
		s := &budgets[i]
		s.Warn = s.Limit > 0 && float64(s.Used) >= warnAt*float64(s.Limit)
	}
}

// meter watches the budgets of a call while its answer comes.
type meter struct {
	budgets []BudgetUsage
	model   string
	tell    func(BudgetUsage)
	told    []bool
	scale   compile.Scale
	bytes   int64 // of thoughts that came
}

// meter counts what the session has used; nil when there is no budget to watch.
func (b *Branch) meter(ctx context.Context, c *call, p *compile.Prompt, model string) (*meter, error) {
	budgets := b.budgets(c.settings)
	limited := slices.ContainsFunc(budgets, func(s BudgetUsage) bool { return s.Limit > 0 })
	if !limited || c.ask.OnBudget == nil && !c.ask.EnforceBudgets {
		return nil, nil
	}
	if err := b.countSpent(ctx, budgets, p.Head); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	m := &meter{budgets: budgets, model: model, scale: p.Scale, tell: c.ask.OnBudget, told: make([]bool, len(budgets))}
	for i, s := range budgets {
		m.told[i] = s.Warn // it was told when it happened
		if c.ask.EnforceBudgets && s.counts(model) && s.Limit > 0 && s.Used >= s.Limit {
			return nil, &BudgetError{Usage: s}
		}
	}
	return m, nil
}

// event adds to the estimate what comes of a thought.
func (m *meter) event(e llm.Event) {
	if m == nil || e.Type != llm.ReasoningDelta {
		return
	}
	m.bytes += int64(len(e.Text))
	m.check(m.model, int64(m.scale.Tokens(compile.Estimate(m.bytes))), true)
}

// done counts what the reply reported, with the commits of it.
func (m *meter) done(o *commit.Origin, commits []*commit.Commit) {
	if m == nil {
		return
	}
	cost := history.CostOf(o, commits)
	m.check(o.Model, cost.Tokens+int64(m.scale.Tokens(cost.Estimate)), cost.Estimated)
}

// check tells, once for each budget, that the part at which to warn is reached.
func (m *meter) check(model string, tokens int64, guess bool) {
	now := slices.Clone(m.budgets)
	for i := range now {
		if s := &now[i]; s.counts(model) {
			s.Used, s.Estimated = s.Used+tokens, s.Estimated || guess
		}
	}
	warn(now)
	for i, s := range now {
		if s.Warn && !m.told[i] && m.tell != nil {
			m.told[i] = true
			m.tell(s)
		}
	}
}
