package tract_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

func user(text string) content.Block      { return content.User(text) }
func assistant(text string) content.Block { return content.Assistant(text) }

// toldStory is a conversation of three turns, the second with a tool.
func toldStory(t *testing.T) (*tract.Repo, *tract.Branch) {
	t.Helper()
	repo := open(t)
	main := repo.Branch("main")
	for _, turn := range [][]content.Block{
		{content.System("Be brief.")},
		{user("one")},
		{assistant("uno")},
		{user("two")},
		{think("hm"), call("c1")},
		{result("c1")},
		{assistant("dos")},
		{user("three")},
		{assistant("tres")},
	} {
		must(main.Append(t.Context(), turn, tract.AppendOptions{}))(t)
	}
	return repo, main
}

func TestSummaryReplacesItsRange(t *testing.T) {
	repo, main := toldStory(t)
	before := sent(t, repo, "main")
	old := must(repo.Resolve(t.Context(), "main"))(t)
	id := must(summaryID(main.Compress(t.Context(), "main~2", tract.CompressOptions{Text: "They counted to two."})))(t)
	if got, want := sent(t, repo, "main"), "system:Be brief. | summary:They counted to two. | user:three | assistant:tres"; got != want {
		t.Errorf("prompt %q\nwant   %q", got, want)
	}
	if got := sent(t, repo, old.String()); got != before {
		t.Errorf("the prompt of the past has changed: %q", got)
	}
	p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)
	if hidden := p.SummarizedBy(id); len(hidden) != 6 || hidden[0].Why() != priority.Why("summary "+id.Short()) {
		t.Errorf("%d commits are hidden, the first because of %q", len(hidden), hidden[0].Why())
	}
	must(main.Expand(t.Context(), ":/dos"))(t)
	if got := sent(t, repo, "main"); got != before {
		t.Errorf("expanded it is %q, want %q", got, before)
	}
}

func TestPinnedBlocksStayBesideTheSummary(t *testing.T) {
	repo, main := toldStory(t)
	must(main.Annotate(t.Context(), ":/uno", priority.Pinned, "a fact"))(t)
	must(summaryID(main.Compress(t.Context(), ":/dos", tract.CompressOptions{Text: "They counted."})))(t)
	want := "system:Be brief. | summary:They counted. | assistant:uno | user:three | assistant:tres"
	if got := sent(t, repo, "main"); got != want {
		t.Errorf("prompt %q\nwant   %q", got, want)
	}
	must(main.Annotate(t.Context(), "c1", priority.Normal, "look again"))(t)
	want = "system:Be brief. | summary:They counted. | assistant:uno | tool-call:" + call("").String() + " | tool-result:4 degrees | user:three | assistant:tres"
	if got := sent(t, repo, "main"); got != want {
		t.Errorf("with a call brought back %q\nwant %q", got, want)
	}
}

func TestRangeOfASummaryIsWidened(t *testing.T) {
	repo, main := toldStory(t)
	callID := must(repo.Resolve(t.Context(), "c1"))(t)
	r := must(main.Compress(t.Context(), callID.String()+"~1.."+callID.String(), tract.CompressOptions{DryRun: true}))(t)
	if !r.Widened || len(r.Commits) != 2 {
		t.Errorf("a call was cut from its result: %d commits, widened %v", len(r.Commits), r.Widened)
	}
	thought := must(repo.Resolve(t.Context(), callID.String()+"~1"))(t).String()
	if r = must(main.Compress(t.Context(), thought+"~1.."+thought, tract.CompressOptions{DryRun: true}))(t); !r.Widened {
		t.Error("a message was cut after its thought")
	}
	must(summaryID(main.Compress(t.Context(), ":/uno", tract.CompressOptions{Text: "First."})))(t)
	part := must(repo.Resolve(t.Context(), ":/one"))(t).String() + ".." + must(repo.Resolve(t.Context(), ":/dos"))(t).String()
	r = must(main.Compress(t.Context(), part, tract.CompressOptions{DryRun: true}))(t)
	if !r.Widened || r.Commits[0].Op != commit.Compress {
		t.Errorf("an earlier summary was cut: widened %v, begins with %s", r.Widened, r.Commits[0].Op)
	}
	must(summaryID(main.Compress(t.Context(), part, tract.CompressOptions{Text: "Both."})))(t)
	if got, want := sent(t, repo, "main"), "system:Be brief. | summary:Both. | user:three | assistant:tres"; got != want {
		t.Errorf("prompt %q\nwant   %q", got, want)
	}
}

func TestCompressReasoningOnly(t *testing.T) {
	repo, main := toldStory(t)
	must(summaryID(main.Compress(t.Context(), ":/dos", tract.CompressOptions{Text: "It thought.", Covers: commit.ScopeReasoning})))(t)
	if got := sent(t, repo, "main", tract.CompileOptions{IncludeReasoning: true}); strings.Contains(got, "reasoning:") || !strings.Contains(got, "summary:It thought. | tool-call") {
		t.Errorf("the summary of thoughts is not in their place: %q", got)
	}
	repo, main = toldStory(t)
	must(summaryID(main.Compress(t.Context(), ":/dos", tract.CompressOptions{Text: "They spoke.", Covers: commit.ScopeDialogue})))(t)
	if got := sent(t, repo, "main", tract.CompileOptions{IncludeReasoning: true}); !strings.Contains(got, "reasoning:hm") || strings.Contains(got, "user:two") {
		t.Errorf("the thoughts were not kept: %q", got)
	}
}

func TestAnOpenTurnIsNotCompressed(t *testing.T) {
	_, main := toldStory(t)
	must(main.AppendUser(t.Context(), "four"))(t)
	must(main.Append(t.Context(), []content.Block{think("so"), call("c2")}, tract.AppendOptions{}))(t)
	for _, rng := range []string{"main", "main~4..main", "main..main", "main~2..main~4"} {
		_, err := summaryID(main.Compress(t.Context(), rng, tract.CompressOptions{Text: "x"}))
		if bad := (*compile.RangeError)(nil); !errors.As(err, &bad) {
			t.Errorf("%s: %v, %v", rng, err, bad)
		}
	}
	if _, err := summaryID(main.Compress(t.Context(), ":/dos", tract.CompressOptions{Text: " "})); !errors.Is(err, tract.ErrEmpty) {
		t.Errorf("an empty summary: %v", err)
	}
}

func TestAModelWritesTheSummary(t *testing.T) {
	repo, main := toldStory(t)
	m := says(assistant(" They counted to two. "))
	id := must(summaryID(main.Compress(t.Context(), "", tract.CompressOptions{Client: m, Ask: tract.AskOptions{Settings: map[string]string{"temperature": "0"}}})))(t)
	if asked := messages(m.asked[0].Messages); !strings.Contains(asked, "[user]\ntwo") || !strings.Contains(asked, "[tool result c1]\n4 degrees") || strings.Contains(asked, "three") {
		t.Errorf("asked %q", asked)
	}
	c := must(repo.Show(t.Context(), id.String()))(t)
	if c.Block.String() != "They counted to two." || c.Origin.Model != "test-model" || c.Origin.Usage.Input != 10 || c.Origin.Manifest.IsZero() {
		t.Errorf("summary %q of %+v", c.Block, c.Origin)
	}
	saw := must(inspect.Prompt(t.Context(), repo, id.String()))(t)
	if messages(saw.Messages) != messages(m.asked[0].Messages) {
		t.Errorf("the prompt of the summary is not kept: %q", messages(saw.Messages))
	}
	if _, err := summaryID(main.Compress(t.Context(), "main~3..main~2", tract.CompressOptions{Client: says()})); err == nil {
		t.Error("a model that fails wrote a summary")
	}
}

func TestCompressSucceedsThoughTheBranchGrew(t *testing.T) {
	repo, main := toldStory(t)
	m := says(assistant("They counted."))
	m.between = func() { must(main.AppendUser(t.Context(), "four"))(t) }
	must(summaryID(main.Compress(t.Context(), "", tract.CompressOptions{Client: m})))(t)
	if got, want := sent(t, repo, "main"), "system:Be brief. | summary:They counted. | user:three | assistant:tres | user:four"; got != want {
		t.Errorf("prompt %q\nwant   %q", got, want)
	}
	m = says(assistant("Lost."))
	m.between = func() {
		if err := main.Reset(t.Context(), "main~4"); err != nil {
			t.Error(err)
		}
	}
	if _, err := summaryID(main.Compress(t.Context(), "main~2..main~1", tract.CompressOptions{Client: m})); !errors.As(err, new(*tract.ConflictError)) {
		t.Errorf("on a branch that went elsewhere: %v", err)
	}
}

// TestSummariesInRandomHistories holds compile to its rules whatever was said,
// pinned and compressed: a call goes with its result, what is pinned stays, every
// block is sent once or stood for, and a prompt never changes afterwards.
func TestSummariesInRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		repo := must(tract.Open(t.Context(), "mem:", tract.OpenOptions{}))(t)
		defer repo.Close()
		main := repo.Branch("main")
		known := map[objects.ID]string{}
		for step := range rapid.IntRange(3, 40).Draw(rt, "steps") {
			name := fmt.Sprint("c", step)
			switch rapid.SampledFrom([]string{"turn", "turn", "tool", "pin", "skip", "normal", "compress", "expand"}).Draw(rt, "do") {
			case "turn":
				must(main.Append(t.Context(), []content.Block{user(name)}, tract.AppendOptions{}))(t)
				must(main.Append(t.Context(), []content.Block{think(name), assistant(name)}, tract.AppendOptions{}))(t)
			case "tool":
				must(main.Append(t.Context(), []content.Block{user(name)}, tract.AppendOptions{}))(t)
				must(main.Append(t.Context(), []content.Block{think(name), call(name)}, tract.AppendOptions{}))(t)
				must(main.Append(t.Context(), []content.Block{result(name)}, tract.AppendOptions{}))(t)
			case "pin", "skip", "normal":
				_, _ = main.Annotate(t.Context(), fmt.Sprint("main~", rapid.IntRange(0, 20).Draw(rt, "back")), rapid.SampledFrom([]priority.Level{priority.Pinned, priority.Skip, priority.Normal, priority.Unset}).Draw(rt, "level"), "")
			case "compress":
				a, n := rapid.IntRange(0, 15).Draw(rt, "from"), rapid.IntRange(1, 15).Draw(rt, "length")
				_, _ = summaryID(main.Compress(t.Context(), fmt.Sprintf("main~%d..main~%d", a+n, a), tract.CompressOptions{Text: "summary " + name, Covers: commit.SummaryScope(rapid.IntRange(0, 2).Draw(rt, "covers"))}))
			case "expand":
				_, _ = main.Expand(t.Context(), fmt.Sprint("main~", rapid.IntRange(0, 20).Draw(rt, "back")))
			}
			tip := must(main.Tip(t.Context()))(t)
			if tip.IsZero() {
				continue
			}
			include := map[string]string{"reasoning.include_in_context": fmt.Sprint(rapid.Bool().Draw(rt, "include"))}
			budget := rapid.IntRange(0, 60).Draw(rt, "budget")
			if p, err := repo.Compile(t.Context(), tip.String(), tract.CompileOptions{Settings: include, Budget: budget}); err == nil {
				checkPrompt(rt, p)
			} else if !errors.As(err, new(*priority.OverBudgetError)) {
				rt.Fatal(err)
			}
			known[tip] = sent(t, repo, tip.String())
			anew, err := compile.Chain(t.Context(), struct{ objects.Reader }{repo.Store()}, tip, compile.Options{})
			if err != nil || messages(anew.Messages) != known[tip] {
				rt.Fatalf("compiled anew it is %q, %v\nwas %q", messages(anew.Messages), err, known[tip])
			}
		}
		for tip, was := range known {
			if now := sent(t, repo, tip.String()); now != was {
				rt.Fatalf("the prompt of %s was %q and is %q", tip.Short(), was, now)
			}
		}
	})
}

func checkPrompt(t *rapid.T, p *compile.Prompt) {
	times := map[objects.ID]int{}
	calls, results := map[string]bool{}, map[string]bool{}
	for i, commits := range p.MessageCommits() {
		for j, b := range p.Messages[i].Blocks {
			times[commits[j]]++
			switch b := b.(type) {
			case content.ToolCall:
				calls[b.CallID] = true
			case content.ToolResult:
				results[b.CallID] = calls[b.CallID]
			}
		}
	}
	for id, paired := range results {
		if !paired {
			t.Fatalf("the result of %s comes without its call", id)
		}
	}
	for id := range calls {
		if _, paired := results[id]; !paired {
			t.Fatalf("the call %s goes without its result", id)
		}
	}
	for _, e := range p.Entries {
		want := 0
		if e.InPrompt {
			want = 1
		}
		if times[e.ID] != want {
			t.Fatalf("%s (%s, %s) is in the prompt %d times, sent is %v", e.ID.Short(), e.Op, e.Why(), times[e.ID], e.InPrompt)
		}
		if e.InPrompt == !e.SummarizedBy().IsZero() && e.InPrompt {
			t.Fatalf("%s is sent and stood for", e.ID.Short())
		}
		if e.Level == priority.Pinned && !e.InPrompt && e.Role != content.NoRole && e.Kind != content.KindToolCall && e.Kind != content.KindToolResult {
			t.Fatalf("%s is pinned and left out: %s", e.ID.Short(), e.Why())
		}
	}
}

// TestConcurrentReadersOfAPrompt runs everything that reads a prompt concurrently with compiles of
// the same history: prompts share their memory (see make race).
func TestConcurrentReadersOfAPrompt(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	for range 4 {
		must(main.Ask(t.Context(), says(think("hm"), content.ToolCall{CallID: "c", Name: "look", Arguments: "{}"}), "q", tract.AskOptions{}))(t)
		must(main.Append(t.Context(), []content.Block{content.ToolResult{CallID: "c", Text: "seen"}}, tract.AppendOptions{}))(t)
		must(main.Generate(t.Context(), says(think("so"), content.Assistant("a")), tract.AskOptions{}))(t)
	}
	for _, c := range must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t).Entries {
		if c.Turn == 1 && c.Kind != content.KindUser { // compiling need not read it
			must(main.Annotate(t.Context(), c.ID.String(), priority.Skip, ""))(t)
		}
	}
	must(main.Ask(t.Context(), says(content.Assistant("a")), "q", tract.AskOptions{}))(t)
	var all sync.WaitGroup
	for range 4 {
		for name, look := range map[string]func() error{
			"compile": func() error {
				_, err := repo.Compile(t.Context(), "main", tract.CompileOptions{IncludeReasoning: true})
				return err
			},
			"compress": func() error {
				_, err := main.Compress(t.Context(), "", tract.CompressOptions{DryRun: true})
				return err
			},
			"blame": func() error {
				p, err := repo.Compile(t.Context(), "main", tract.CompileOptions{})
				if err == nil {
					_, err = inspect.Blame(t.Context(), repo, p)
				}
				return err
			},
			"why":     func() error { _, err := inspect.Why(t.Context(), repo, "main"); return err },
			"why not": func() error { _, err := inspect.WhyNot(t.Context(), repo, "main~2", "main"); return err },
			"chat": func() error {
				_, err := repo.Branch("other").Ask(t.Context(), says(think("x"), content.Assistant("y")), "z", tract.AskOptions{})
				return err
			},
		} {
			all.Go(func() {
				if err := look(); err != nil && name != "chat" { // others of them win
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	all.Wait()
}
