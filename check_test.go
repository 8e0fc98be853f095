package tract_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// claude is a target that demands the thoughts of a tool loop back. It is never
// sent anything.
func claude(t *testing.T) *providers.Client {
	t.Helper()
	return must(providers.Open("anthropic", providers.Config{Model: "m", APIKey: "k", BaseURL: "http://127.0.0.1:9"}))(t)
}

// rules lists the rules that a revision breaks, and the commits they name.
func rules(t *testing.T, repo *tract.Repo, rev string) (names []string, commits []objects.ID) {
	t.Helper()
	for _, p := range must(repo.Check(t.Context(), rev, claude(t), tract.RequestOptions{}))(t) {
		names, commits = append(names, p.Rule), append(commits, p.Commit)
	}
	return names, commits
}

func TestCheckNamesTheRuleAndTheCommit(t *testing.T) {
	for name, tell := range map[string]struct {
		spoil func(t *testing.T, main *tract.Branch, r *tract.Response) objects.ID
		want  []string
	}{
		"a whole loop": {func(*testing.T, *tract.Branch, *tract.Response) objects.ID { return objects.ID{} }, nil},
		"a thought is skipped": {func(t *testing.T, main *tract.Branch, r *tract.Response) objects.ID {
			must(main.Annotate(t.Context(), r.ReasoningCommits[0].String(), priority.Skip, "too long"))(t)
			return r.ReasoningCommits[0]
		}, []string{"reasoning-left-out"}},
		"a thought was edited": {func(t *testing.T, main *tract.Branch, r *tract.Response) objects.ID {
			must(main.Edit(t.Context(), r.ReasoningCommits[0].String(), "something else", tract.EditOptions{}))(t)
			return r.ReasoningCommits[0]
		}, []string{"reasoning-edited", "block-not-sent"}},
		"a block breaks a rule of the provider": {func(t *testing.T, main *tract.Branch, r *tract.Response) objects.ID {
			return must(main.AppendUser(t.Context(), "a\xff"))(t)
		}, []string{"not-utf8"}},
		"the loop is over": {func(t *testing.T, main *tract.Branch, r *tract.Response) objects.ID {
			must(main.Annotate(t.Context(), r.ReasoningCommits[0].String(), priority.Skip, ""))(t)
			must(main.AppendUser(t.Context(), "Thanks."))(t)
			return objects.ID{}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			repo := open(t)
			main := repo.Branch("main")
			r := must(main.Ask(t.Context(), says(think("hm"), call("1")), "Weather?", tract.AskOptions{}))(t)
			must(main.Append(t.Context(), []content.Block{result("1")}, tract.AppendOptions{}))(t)
			culprit := tell.spoil(t, main, r)
			got, commits := rules(t, repo, "main")
			if !slices.Equal(got, tell.want) {
				t.Fatalf("rules %v, want %v", got, tell.want)
			}
			if len(tell.want) > 0 && commits[0] != culprit {
				t.Errorf("it names commit %s, want %s", commits[0].Short(), culprit.Short())
			}
		})
	}
}

func TestCheckReportsAPendingCallOnce(t *testing.T) {
	repo := open(t)
	r := must(repo.Branch("main").Ask(t.Context(), says(think("hm"), call("1")), "Weather?", tract.AskOptions{}))(t)
	got, commits := rules(t, repo, "main")
	if !slices.Equal(got, []string{"pending-call"}) || commits[0] != r.Commits[1] {
		t.Errorf("rules %v at %v", got, commits)
	}
}

// TestUnansweredCallIsReported appends a user message before the result of a call: the append warns
// once, and Check reports the call from then on.
func TestUnansweredCallIsReported(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	var said []tract.Problem
	warn := func(p tract.Problem) { said = append(said, p) }
	m := says(think("hm"), call("1"), call("2")).then(content.Assistant("Never mind."))
	asked := must(main.Ask(t.Context(), m, "Weather?", tract.AskOptions{OnWarning: warn}))(t)
	must(main.Append(t.Context(), []content.Block{content.System("Be brief.")}, tract.AppendOptions{OnWarning: warn}))(t)
	must(main.Append(t.Context(), []content.Block{result("1")}, tract.AppendOptions{OnWarning: warn}))(t)
	if len(said) > 0 {
		t.Fatalf("said while the loop is open: %+v", said)
	}
	must(main.Ask(t.Context(), m, "And tomorrow?", tract.AskOptions{OnWarning: warn}))(t)
	if len(said) != 1 || said[0].Rule != tract.RuleUnanswered || said[0].CallID != "2" || said[0].Commit != asked.Commits[2] || !said[0].Warning {
		t.Fatalf("said: %+v", said)
	}
	must(main.Append(t.Context(), []content.Block{content.User("Thanks.")}, tract.AppendOptions{OnWarning: warn}))(t)
	if len(said) != 1 {
		t.Errorf("said again: %+v", said[1:])
	}
	if names, commits := rules(t, repo, "main"); !slices.Equal(names, []string{tract.RuleUnanswered}) || commits[0] != asked.Commits[2] {
		t.Errorf("check names %v, %v", names, commits)
	}
}

// TestGenerateChecksFirst: what the provider would refuse is not sent, unless forced.
func TestGenerateChecksFirst(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	r := must(main.Ask(t.Context(), says(think("hm"), call("1")), "Weather?", tract.AskOptions{}))(t)
	must(main.Append(t.Context(), []content.Block{result("1")}, tract.AppendOptions{}))(t)
	must(main.Annotate(t.Context(), r.ReasoningCommits[0].String(), priority.Skip, ""))(t)

	var refused *tract.RuleError
	_, err := main.Prepare(t.Context(), claude(t), tract.PrepareOptions{})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "reasoning-left-out") {
		t.Fatalf("prepare: %v", err)
	}
	var warned []string
	x := must(main.Prepare(t.Context(), claude(t), tract.PrepareOptions{AskOptions: tract.AskOptions{Force: true, OnWarning: func(p tract.Problem) { warned = append(warned, p.Rule) }}}))(t)
	if len(x.Body) == 0 || !slices.Equal(warned, []string{"reasoning-left-out"}) {
		t.Errorf("forced: %d bytes, warned of %v", len(x.Body), warned)
	}
}
