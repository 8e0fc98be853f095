package tract_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/priority"
)

// TestStripGoesBeforeInclude: three turns with a thought each, and the six ways
// to set the two settings.
func TestStripGoesBeforeInclude(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	for _, n := range []string{"1", "2", "3"} {
		must(main.Ask(t.Context(), says(think("t"+n), content.Assistant("a"+n)), "q"+n, tract.AskOptions{}))(t)
	}
	for _, c := range []struct{ strip, include, want string }{
		{"none", "true", "t1 t2 t3"},
		{"none", "false", ""},
		{"all-but-last", "true", "t3"},
		{"all-but-last", "false", ""},
		{"all", "true", ""},
		{"all", "false", ""},
	} {
		p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{Settings: map[string]string{"reasoning.strip_from_context": c.strip, "reasoning.include_in_context": c.include}}))(t)
		var thoughts, words []string
		for _, m := range p.Messages {
			for _, b := range m.Blocks {
				if b.Kind() == content.KindReasoning {
					thoughts = append(thoughts, b.String())
				} else {
					words = append(words, b.String())
				}
			}
		}
		if got := strings.Join(thoughts, " "); got != c.want {
			t.Errorf("strip %s, include %s: %q is sent, want %q", c.strip, c.include, got, c.want)
		}
		if got := strings.Join(words, " "); got != "q1 a1 q2 a2 q3 a3" {
			t.Errorf("strip %s, include %s: the words are %q", c.strip, c.include, got)
		}
	}
}

// spender answers with thoughts that cost something.
type spender struct {
	model     string
	reasoning []int64 // that each answer tells
	thought   string
}

func (s *spender) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	told := s.reasoning[0]
	s.reasoning = s.reasoning[1:]
	return &llm.Response{
		Blocks: []content.Block{think(s.thought), content.Assistant("done")},
		Head:   llm.Head{Model: s.model, Usage: content.Usage{Input: 100, Output: 500, Reasoning: told}},
	}, nil
}

func TestABudgetWarnsOnceAndIsEnforcedWhenAsked(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	var told []tract.BudgetUsage
	asked := tract.AskOptions{
		Settings: map[string]string{"reasoning.budget": "100", "reasoning.budgets.small*": "10"}, EnforceBudgets: true,
		OnBudget: func(s tract.BudgetUsage) { told = append(told, s) },
	}
	client := &spender{model: "big-1", thought: "hm", reasoning: []int64{40, 40, 30, 7}}
	for range 3 {
		must(main.Ask(t.Context(), client, "Go on.", asked))(t)
	}
	if len(told) != 1 || told[0] != (tract.BudgetUsage{Session: "main", Used: 80, Limit: 100, Warn: true}) {
		t.Errorf("told %+v", told)
	}
	_, err := main.Ask(t.Context(), client, "And on.", asked)
	var over *tract.BudgetError
	if !errors.As(err, &over) || over.Usage.Used != 110 || len(client.reasoning) != 1 {
		t.Fatalf("the budget is not enforced: %v", err)
	}
	if got := kinds(t, repo, "main"); !strings.HasSuffix(got, "assistant user") {
		t.Errorf("the question is not kept: %s", got)
	}

	// A fork begins at nothing, and what it spends is its own.
	fork := must(main.Fork(t.Context(), "fork", "main~1"))(t)
	if s := must(fork.BudgetUsage(t.Context(), asked.Settings))(t); s[0].Used != 0 || s[0].Limit != 100 || s[1].Models != "small*" {
		t.Errorf("the fork has spent %+v", s)
	}
	client.model = "small-2"
	must(fork.Ask(t.Context(), client, "Again?", asked))(t)
	spent := must(fork.BudgetUsage(t.Context(), asked.Settings))(t)
	if spent[0].Used != 7 || spent[1].Used != 7 || spent[0].Warn || spent[1].Warn {
		t.Errorf("the fork has spent %+v", spent)
	}
	if s := must(main.BudgetUsage(t.Context(), asked.Settings))(t); s[0].Used != 110 {
		t.Errorf("main has spent %+v", s)
	}
	var sum int64
	for reply, err := range inspect.Usage(t.Context(), repo, inspect.UsageOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		sum += reply.Reasoning
	}
	if sum != 117 {
		t.Errorf("over all branches %d tokens, want each reply once: 117", sum)
	}
}

// TestABudgetIsWatchedWhileThoughtsCome: the warning does not wait for the end of
// a long thought.
func TestABudgetIsWatchedWhileThoughtsCome(t *testing.T) {
	repo := open(t)
	came, at := 0, 0
	_, err := repo.Branch("main").Ask(t.Context(), streaming{says(think(strings.Repeat("x", 400)), content.Assistant("ok"))}, "Think.", tract.AskOptions{OnEvent: func(e llm.Event) { came++ }, OnBudget: func(s tract.BudgetUsage) {
		if at = came; !s.Estimated || s.Used != 25 {
			t.Errorf("told %+v", s)
		}
	}, Settings: map[string]string{"reasoning.budget": "31"}})
	if err != nil || at != 96 {
		t.Errorf("told after %d events, %v", at, err)
	}
	if _, err := repo.Branch("main").Ask(t.Context(), says(content.Assistant("ok")), "And now?", tract.AskOptions{OnBudget: func(tract.BudgetUsage) {}, Settings: map[string]string{"reasoning.budget": "1"}}); err != nil {
		t.Errorf("a budget is enforced that nobody asked to enforce: %v", err)
	}
}

// TestReasoningThatIsNotReportedCountsAsInAPrompt: a thought that was kept has one count;
// of one that was not kept only the output tells.
func TestReasoningThatIsNotReportedCountsAsInAPrompt(t *testing.T) {
	repo := open(t)
	kept, unkept := repo.Branch("kept"), repo.Branch("unkept")
	client := func() *spender {
		return &spender{model: "claude", thought: strings.Repeat("hm ", 100), reasoning: []int64{0}}
	}
	must(kept.Ask(t.Context(), client(), "Think.", tract.AskOptions{}))(t)
	p := must(repo.Compile(t.Context(), "kept", tract.CompileOptions{}))(t)
	if s := must(kept.BudgetUsage(t.Context(), nil))(t)[0]; s.Used != int64(p.Tokens.HiddenReasoning) || s.Used < 75 || !s.Estimated {
		t.Errorf("spent %+v, the prompt leaves out %d", s, p.Tokens.HiddenReasoning)
	}
	must(unkept.Ask(t.Context(), client(), "Think.", tract.AskOptions{Settings: map[string]string{"reasoning.commit": "false"}}))(t)
	if s := must(unkept.BudgetUsage(t.Context(), nil))(t)[0]; s.Used < 490 || s.Used > 500 || !s.Estimated {
		t.Errorf("spent %+v of 500", s)
	}
}

// TestEstimateOfAnEarlierPromptIsStable checks that a prompt of an earlier commit has the same
// estimate as it had then, in whatever way it is requested.
func TestEstimateOfAnEarlierPromptIsStable(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	var then []int
	var tips []string
	client := &spender{model: "m", thought: strings.Repeat("hm ", 50), reasoning: []int64{20, 30, 0, 40}}
	for i := range 4 {
		must(main.Ask(t.Context(), client, strings.Repeat("word ", 100*i+1), tract.AskOptions{}))(t)
		tip := must(main.Tip(t.Context()))(t)
		p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)
		then, tips = append(then, p.Tokens.Effective), append(tips, tip.String())
		if sum := p.Tokens.Effective + p.Tokens.Hidden + p.Tokens.HiddenReasoning; sum != p.Tokens.Raw {
			t.Errorf("%+v do not add up", p.Tokens)
		}
	}
	must(main.Annotate(t.Context(), tips[0], priority.Skip, ""))(t)
	for i, tip := range tips {
		if p := must(repo.Compile(t.Context(), tip, tract.CompileOptions{}))(t); p.Tokens.Effective != then[i] {
			t.Errorf("the prompt after turn %d counts %d, and counted %d then", i+1, p.Tokens.Effective, then[i])
		}
	}
}
