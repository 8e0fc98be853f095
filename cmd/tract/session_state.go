package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
)

// profile handles /profile: it saves the settings of the session under a name, or loads them.
func (s *session) profile(_ context.Context, rest string) error {
	word, name, _ := strings.Cut(rest, " ")
	name = strings.TrimSpace(name)
	switch {
	case rest == "" || rest == "list":
		return s.a.listProfiles()
	case word != "save" && word != "load" || name == "" || strings.Contains(name, " "):
		return withHint(fmt.Errorf("unknown command: /profile %s", rest), "/profile save NAME, /profile load NAME, /profile list")
	case word == "save":
		return s.a.createOrReplaceProfile(&profileOptions{}, name)
	}
	path, set, err := s.a.readProfile(false, name)
	if err != nil {
		return err
	}
	v, err := s.a.loaded.WithProfile(set, settings.Origin{Layer: settings.Call, Name: "/profile " + name})
	if err != nil {
		return err
	}
	s.a.loaded = &v
	for _, key := range slices.Sorted(maps.Keys(set)) {
		s.a.info("%s is %s", key, set[key])
	}
	if len(set) == 0 {
		s.a.info("profile %s in %s is empty", name, path)
	}
	return nil
}

// printPromptSizeIfMoved prints the size of the prompt and the use of budgets, if the branch has
// moved since the last call. branch is empty if HEAD is detached.
func (s *session) printPromptSizeIfMoved(ctx context.Context, branch string) error {
	if branch == "" {
		return nil // HEAD is at a commit
	}
	b := s.a.repo.Branch(branch)
	tip, err := b.Tip(ctx)
	if err != nil || tip.IsZero() || tip == s.shownTip {
		return err
	}
	s.shownTip = tip
	line, err := s.a.tokensAndBudgetsLine(ctx, b, tip)
	if err != nil {
		return err
	}
	p := s.a.stderrPrinter()
	p.Text(p.Dim(line) + "\n")
	return p.Err()
}

func (a *app) tokensAndBudgetsLine(ctx context.Context, b *tract.Branch, tip objects.ID) (string, error) {
	opts, err := a.configuredCompileOptions()
	if err != nil {
		return "", err
	}
	p, err := a.repo.Compile(ctx, tip.String(), opts)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%d tokens in context", p.Tokens.Effective)
	if hidden := p.Tokens.HiddenReasoning; hidden > 0 {
		line += fmt.Sprintf(", %d of reasoning hidden", hidden)
	}
	if !hasReasoningBudget(*a.loaded) {
		return line, nil
	}
	budgets, err := b.BudgetUsage(ctx, opts.Settings)
	if err != nil {
		return "", err
	}
	for _, spent := range budgets {
		if spent.Limit > 0 {
			line += " · " + format.Line(budgetLine(spent))
		}
	}
	return line, nil
}
