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

// BudgetUsage is what the reasoning of a session has used of one budget, in tokens.
type BudgetUsage struct {
	Session   string
	Models    string // pattern of the models whose reasoning counts; empty: all
	Used      int64
	Limit     int64 // 0: there is none
	Warn      bool  // at least 80 % of Limit is used
	Estimated bool  // some of Used was not reported by a provider, or is still coming
}

// BudgetError is the error for a session that has used up a budget. Nothing was sent.
type BudgetError struct{ Usage BudgetUsage }

// Error names the session, the tokens used and the limit.
func (e *BudgetError) Error() string {
	of := ""
	if e.Usage.Models != "" {
		of = " on " + e.Usage.Models
	}
	return fmt.Sprintf("generate: session %s has used %d of %d reasoning tokens%s", e.Usage.Session, e.Usage.Used, e.Usage.Limit, of)
}

// BudgetUsage returns what the reasoning of the branch has used: first of reasoning.budget,
// which has the sum even when there is no limit, then of each of reasoning.budgets. A
// response counts in the session that it was committed on, so a fork begins at zero.
// Settings are laid over those of the Repo.
func (b *Branch) BudgetUsage(ctx context.Context, settings map[string]string) ([]BudgetUsage, error) {
	c := b.repo.defaultOptions()
	if err := c.setSettings(settings); err != nil {
		return nil, err
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	budgets := b.unusedBudgets(c.settings)
	if tip.IsZero() {
		return budgets, nil
	}
	if err := b.addUsageAndSetWarn(ctx, budgets, tip); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return budgets, nil
}

// unusedBudgets returns the budgets of the settings, with nothing used.
func (b *Branch) unusedBudgets(v settings.Values) []BudgetUsage {
	list := []BudgetUsage{{Session: b.name, Limit: int64(v.Int("reasoning.budget"))}}
	limits := v.Budgets()
	for _, pattern := range slices.Sorted(maps.Keys(limits)) {
		list = append(list, BudgetUsage{Session: b.name, Models: pattern, Limit: int64(limits[pattern])})
	}
	return list
}

// addUsageAndSetWarn adds the reasoning tokens of the responses of the session to budgets, and then sets
// Warn. tip is the end of the history with the responses.
func (b *Branch) addUsageAndSetWarn(ctx context.Context, budgets []BudgetUsage, tip objects.ID) error {
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
			if s := &budgets[i]; s.countsModel(origin.Model) {
				s.Used += response.Tokens
				s.Estimated = s.Estimated || response.Estimated
				estimates[i] += response.Estimate
			}
		}
	}
	if slices.Max(estimates) > 0 {
		scale, err := compile.ScaleOf(ctx, b.repo.store, tip)
		if err != nil && !history.IsDamaged(err) { // without the damaged part, the estimates stay as they are
			return err
		}
		for i := range budgets {
			budgets[i].Used += int64(scale.Tokens(estimates[i]))
		}
	}
	setWarn(budgets)
	return nil
}

// countsModel reports whether a budget counts a model.
func (s *BudgetUsage) countsModel(model string) bool {
	return s.Models == "" || settings.Match(s.Models, model)
}

// warnAt is the fraction of a budget at which to warn.
const warnAt = 0.8

// setWarn sets Warn of budgets of which warnAt is used.
func setWarn(budgets []BudgetUsage) {
	for i := range budgets {
		s := &budgets[i]
		s.Warn = s.Limit > 0 && float64(s.Used) >= warnAt*float64(s.Limit)
	}
}

// budgetMeter checks the budgets of a request while its response arrives. A nil meter
// checks nothing.
type budgetMeter struct {
	budgets  []BudgetUsage
	model    string
	notify   func(BudgetUsage)
	notified []bool
	scale    compile.Scale
	bytes    int64 // of reasoning received so far
}

// newBudgetMeter returns a meter that starts with the session's usage; nil when there is no
// budget to check. With EnforceBudgets, a budget that is used up is a *[BudgetError].
func (b *Branch) newBudgetMeter(ctx context.Context, c *callOptions, p *compile.Prompt, model string) (*budgetMeter, error) {
	budgets := b.unusedBudgets(c.settings)
	limited := slices.ContainsFunc(budgets, func(s BudgetUsage) bool { return s.Limit > 0 })
	if !limited || c.ask.OnBudget == nil && !c.ask.EnforceBudgets {
		return nil, nil
	}
	if err := b.addUsageAndSetWarn(ctx, budgets, p.Head); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	m := &budgetMeter{budgets: budgets, model: model, scale: p.Scale, notify: c.ask.OnBudget, notified: make([]bool, len(budgets))}
	for i, s := range budgets {
		m.notified[i] = s.Warn // OnBudget was called when it happened
		if c.ask.EnforceBudgets && s.countsModel(model) && s.Limit > 0 && s.Used >= s.Limit {
			return nil, &BudgetError{Usage: s}
		}
	}
	return m, nil
}

// countEvent adds the reasoning of a stream event to the estimate.
func (m *budgetMeter) countEvent(e llm.Event) {
	if m == nil || e.Type != llm.ReasoningDelta {
		return
	}
	m.bytes += int64(len(e.Text))
	m.callOnBudget(m.model, int64(m.scale.Tokens(compile.Estimate(m.bytes))), true)
}

// callOnBudgetWithCost calls callOnBudget with the reasoning tokens of the complete response.
func (m *budgetMeter) callOnBudgetWithCost(o *commit.Origin, commits []*commit.Commit) {
	if m == nil {
		return
	}
	cost := history.ReasoningCost(o, commits)
	m.callOnBudget(o.Model, cost.Tokens+int64(m.scale.Tokens(cost.Estimate)), cost.Estimated)
}

// callOnBudget calls OnBudget once for each budget that reaches warnAt with the tokens of
// the response so far.
func (m *budgetMeter) callOnBudget(model string, tokens int64, estimated bool) {
	now := slices.Clone(m.budgets)
	for i := range now {
		if s := &now[i]; s.countsModel(model) {
			s.Used, s.Estimated = s.Used+tokens, s.Estimated || estimated
		}
	}
	setWarn(now)
	for i, s := range now {
		if s.Warn && !m.notified[i] && m.notify != nil {
			m.notified[i] = true
			m.notify(s)
		}
	}
}
