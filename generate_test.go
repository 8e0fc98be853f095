package tract_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// The first ten tests are the rules of the design for reasoning traces
// (docs/design/model.md), one each.

func TestReasoningIsLeftOutOfPromptsByDefault(t *testing.T) {
	repo := open(t)
	must(repo.Branch("main").Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{}))(t)
	if got := sent(t, repo, "main"); got != "user:Colour? | assistant:Blue." {
		t.Error(got)
	}
}

func TestIncludeReasoningPutsItIn(t *testing.T) {
	repo := open(t)
	must(repo.Branch("main").Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{}))(t)
	for name, opt := range map[string]tract.CompileOptions{"option": {IncludeReasoning: true}, "setting": {Settings: map[string]string{"reasoning.include_in_context": "true"}}} {
		if got := sent(t, repo, "main", opt); got != "user:Colour? | reasoning:hm | assistant:Blue." {
			t.Errorf("%s: %s", name, got)
		}
	}
	if moves := must(repo.Store().Log(t.Context(), "refs/heads/main", 0, 10))(t); len(moves) != 2 {
		t.Errorf("the question and the reply moved the branch %d times: the thoughts come in a transaction of their own", len(moves))
	}
}

func TestExplicitSkipBeatsTheFlag(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	r := must(main.Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{}))(t)
	must(main.Annotate(t.Context(), r.ReasoningCommits[0].String(), priority.Skip, ""))(t)
	if got := sent(t, repo, "main", tract.CompileOptions{IncludeReasoning: true}); got != "user:Colour? | assistant:Blue." {
		t.Error(got)
	}
}

func TestExplicitPinShowsItWithoutTheFlag(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	r := must(main.Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{}))(t)
	must(main.Annotate(t.Context(), r.ReasoningCommits[0].String(), priority.Pinned, "important step"))(t)
	for _, strip := range []string{"none", "all-but-last", "all"} {
		p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{Settings: map[string]string{"reasoning.strip_from_context": strip}}))(t)
		if got := messages(p.Messages); got != "user:Colour? | reasoning:hm | assistant:Blue." || p.Entries[1].Why() != "annotated: important step" {
			t.Errorf("strip %s: %s, %s", strip, got, p.Entries[1].Why())
		}
	}
}

func TestUncommittedReasoningIsInTheResponse(t *testing.T) {
	for name, c := range map[string]struct {
		open tract.OpenOptions
		call tract.AskOptions
	}{
		"per call": {call: tract.AskOptions{Settings: map[string]string{"reasoning.commit": "off"}}},
		"on open":  {open: tract.OpenOptions{Settings: map[string]string{"reasoning.commit": "false"}}},
	} {
		repo := open(t, c.open)
		r := must(repo.Branch("main").Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", c.call))(t)
		if r.Reasoning != "hm" || len(r.ReasoningCommits) != 0 || kinds(t, repo, "main") != "user assistant" {
			t.Errorf("%s: %q, %v, %s", name, r.Reasoning, r.ReasoningCommits, kinds(t, repo, "main"))
		}
	}
}

func TestNewestPriorityOfReasoningWins(t *testing.T) {
	repo := open(t, tract.OpenOptions{Settings: map[string]string{"reasoning.commit": "false"}})
	must(repo.Branch("main").Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{Settings: map[string]string{"reasoning.commit": "true"}}))(t)
	if got := kinds(t, repo, "main"); got != "user reasoning assistant" {
		t.Error(got)
	}
}

func TestAClientWithoutAnExtractorWorks(t *testing.T) {
	repo := open(t)
	r := must(repo.Branch("main").Ask(t.Context(), says(content.Assistant("hm => Blue.")), "Colour?", tract.AskOptions{}))(t)
	if r.Text != "hm => Blue." || r.Reasoning != "" || kinds(t, repo, "main") != "user assistant" {
		t.Errorf("%+v, %s", r, kinds(t, repo, "main"))
	}
}

func TestAnExtractorIsAskedWhenNoBlockIsReasoning(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	r := must(main.Ask(t.Context(), extracting{says(content.Assistant("hm => Blue."))}, "Colour?", tract.AskOptions{}))(t)
	if r.Text != "Blue." || r.Reasoning != "hm" || kinds(t, repo, "main") != "user reasoning assistant" {
		t.Errorf("%+v, %s", r, kinds(t, repo, "main"))
	}
	thought := must(repo.Show(t.Context(), r.ReasoningCommits[0].String()))(t).Block.(content.Reasoning)
	if thought.Format != content.FormatRaw || thought.Source != "arrow" {
		t.Errorf("format and source: %+v", thought)
	}
	r = must(main.Ask(t.Context(), extracting{says(think("real"), content.Assistant("a => b"))}, "More?", tract.AskOptions{}))(t)
	if r.Text != "a => b" || r.Reasoning != "real" {
		t.Errorf("an extractor was asked although there was reasoning: %+v", r)
	}
}

func TestAnAnswerWithoutTextMakesNoEmptyCommit(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []content.Block
		want   string
	}{
		"reasoning only":    {[]content.Block{think("hm")}, "user reasoning"},
		"calls":             {[]content.Block{think("hm"), content.Assistant(""), call("1")}, "user reasoning tool-call"},
		"white space":       {[]content.Block{content.Assistant(" \n"), call("1")}, "user tool-call"},
		"a sealed nothing":  {[]content.Block{content.Text{Of: content.KindAssistant, Wire: content.Form{Seal: content.Seal{Type: content.Opaque, Data: "x"}}.Wire()}}, "user assistant"},
		"nothing whatever":  {[]content.Block{}, "user note"},
		"an empty answer":   {[]content.Block{content.Assistant("")}, "user note"},
		"thoughts and text": {[]content.Block{think("hm"), content.Assistant("x")}, "user reasoning assistant"},
	} {
		repo := open(t)
		r := must(repo.Branch("main").Ask(t.Context(), says(c.blocks...), "Q", tract.AskOptions{}))(t)
		if got := kinds(t, repo, "main"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		last := must(repo.Show(t.Context(), "main"))(t)
		if last.Origin == nil || last.Origin.Usage.Output != 5 || len(r.Commits) == 0 {
			t.Errorf("%s: what it cost is lost", name)
		}
	}
}

func TestTimeTravelHasThePrioritiesOfThatTime(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.Ask(t.Context(), says(think("hm"), content.Assistant("Blue.")), "Colour?", tract.AskOptions{}))(t)
	then := must(main.Tip(t.Context()))(t)
	must(main.Annotate(t.Context(), "main~2", priority.Skip, "noise"))(t)
	if got := sent(t, repo, then.String()); got != "user:Colour? | assistant:Blue." {
		t.Errorf("then: %s", got)
	}
	if got := sent(t, repo, "main"); got != "assistant:Blue." {
		t.Errorf("now: %s", got)
	}
}

func TestAToolLoopSendsItsThoughtsBack(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("ask the tool"), call("1"), call("2")).then(think("cold"), content.Assistant("Cold."))
	r := must(main.Ask(t.Context(), m, "Weather?", tract.AskOptions{}))(t)
	if len(r.ToolCalls) != 2 {
		t.Fatalf("calls %v", r.ToolCalls)
	}
	var pending *tract.PendingError
	if _, err := main.Generate(t.Context(), m, tract.AskOptions{}); !errors.As(err, &pending) || len(pending.Calls) != 2 || !strings.Contains(err.Error(), "1, 2") {
		t.Fatalf("generate with pending calls: %v", err)
	}
	must(main.Append(t.Context(), []content.Block{result("2")}, tract.AppendOptions{}))(t)
	if calls := must(main.Pending(t.Context()))(t); len(calls) != 1 || calls[0].CallID != "1" {
		t.Fatalf("pending %v", calls)
	}
	must(main.Append(t.Context(), []content.Block{result("1")}, tract.AppendOptions{}))(t)
	must(main.Generate(t.Context(), m, tract.AskOptions{}))(t)
	request := m.asked[1].Messages
	if len(request) != 3 || request[1].Blocks[0].(content.Reasoning).Form().Seal.Data != "sig-ask the tool" {
		t.Fatalf("the second request: %+v", request)
	}
	if results := request[2].Blocks; results[0].(content.ToolResult).CallID != "1" || results[1].(content.ToolResult).CallID != "2" {
		t.Error("results are not in the order of their calls")
	}
	if got := kinds(t, repo, "main"); got != "user reasoning tool-call tool-call tool-result tool-result reasoning assistant" {
		t.Error(got)
	}
}

func TestThoughtsThatAreNotCommittedStayUntilTheLoopCloses(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("a"), call("1"), think("b"), call("2")).then(content.Assistant("Cold.")).then(content.Assistant("Cold.")).then(content.Assistant("Bye."))
	must(main.Ask(t.Context(), m, "Weather?", tract.AskOptions{Settings: map[string]string{"reasoning.commit": "false"}}))(t)
	must(main.Append(t.Context(), []content.Block{result("1"), result("2")}, tract.AppendOptions{}))(t)

	var rule *tract.RuleError
	if _, err := repo.Branch("main").Generate(t.Context(), m, tract.AskOptions{}); !errors.As(err, &rule) || rule.Problems[0].Rule != "reasoning-not-kept" {
		t.Errorf("a handle that never had the thoughts: %v", err)
	}
	fork := must(main.Fork(t.Context(), "fork", "main"))(t)
	must(main.Generate(t.Context(), m, tract.AskOptions{}))(t)
	got := messages(m.asked[1].Messages)
	must(fork.Generate(t.Context(), m, tract.AskOptions{}))(t)
	if forked := messages(m.asked[2].Messages); forked != got {
		t.Errorf("on a fork are sent %s", forked)
	}
	if want := `user:Weather? | reasoning:a | tool-call:{"city":"Oslo"} | reasoning:b | tool-call:{"city":"Oslo"} | tool-result:4 degrees | tool-result:4 degrees`; got != want {
		t.Errorf("sent %s", got)
	}
	must(main.Ask(t.Context(), m, "Thanks.", tract.AskOptions{}))(t)
	if got := messages(m.asked[3].Messages); strings.Contains(got, "reasoning") {
		t.Errorf("after the loop: %s", got)
	}
}

func TestStreamingIsSeenAsItComes(t *testing.T) {
	repo := open(t)
	var seen strings.Builder
	watch := func(e llm.Event) {
		if e.Type != llm.BlockDone {
			seen.WriteString(e.Text)
		}
	}
	r := must(repo.Branch("main").Ask(t.Context(), streaming{says(think("hm"), content.Assistant("Blue."))}, "Colour?", tract.AskOptions{OnEvent: watch}))(t)
	if seen.String() != "hmBlue." || r.Text != "Blue." || r.Finish != "stop" || kinds(t, repo, "main") != "user reasoning assistant" {
		t.Errorf("saw %q, %+v", seen.String(), r)
	}
}

func TestABrokenStreamIsKept(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := streaming{says()}
	m.answers = []answer{{blocks: []content.Block{think("hm"), content.Assistant("Blu")}, err: llm.ErrTruncated}}
	_, err := main.Ask(t.Context(), m, "Colour?", tract.AskOptions{})
	var broken *tract.IncompleteError
	if !errors.As(err, &broken) || !errors.Is(err, llm.ErrTruncated) || !strings.Contains(err.Error(), broken.Rescued) {
		t.Fatalf("%v", err)
	}
	if kinds(t, repo, "main") != "user" {
		t.Errorf("the branch has %s", kinds(t, repo, "main"))
	}
	rescues := must(repo.Rescues(t.Context()))(t)
	if len(rescues) != 1 || rescues[0].Branch != "main" || "refs/rescued/"+rescues[0].Name != broken.Rescued {
		t.Fatalf("rescued: %+v, want %s", rescues, broken.Rescued)
	}
	reply := rescues[0].Commits
	if len(reply) != 2 || reply[0].Block.Form().Incomplete || !reply[1].Block.Form().Incomplete || !reply[0].Origin.Incomplete || reply[1].Block.String() != "Blu" {
		t.Errorf("what is kept: %+v", reply)
	}
	must(main.TakeRescue(t.Context(), rescues[0].Name, tract.RescueOptions{}))(t)
	if kinds(t, repo, "main") != "user reasoning assistant" || len(must(repo.Rescues(t.Context()))(t)) != 0 {
		t.Error("the reply was not taken")
	}
}

func TestACancelledGenerateKeepsWhatCame(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	watch := func(llm.Event) {
		if n++; n == 8 {
			cancel()
		}
	}
	_, err := main.Ask(ctx, streaming{says(think("thought"), content.Assistant("A long answer."))}, "Q", tract.AskOptions{OnEvent: watch})
	var broken *tract.IncompleteError
	if !errors.As(err, &broken) || !errors.Is(err, context.Canceled) || broken.Response.Reasoning != "thought" {
		t.Fatalf("%v", err)
	}
	if reply := must(repo.Rescues(t.Context()))(t)[0].Commits; len(reply) != 1 {
		t.Errorf("kept %d commits", len(reply))
	}
}

func TestAReplyWhoseBranchMovedIsKept(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("hm"), content.Assistant("Blue."))
	m.between = func() { must(repo.Branch("main").AppendUser(t.Context(), "Wait!"))(t) }
	_, err := main.Ask(t.Context(), m, "Colour?", tract.AskOptions{})
	var moved *tract.ConflictError
	if !errors.As(err, &moved) || moved.Response.Text != "Blue." || moved.Rescued == "" {
		t.Fatalf("%v", err)
	}
	if kinds(t, repo, "main") != "user user" {
		t.Error(kinds(t, repo, "main"))
	}
	var misplaced *tract.MisplacedError
	if _, err := main.TakeRescue(t.Context(), moved.Rescued, tract.RescueOptions{}); !errors.As(err, &misplaced) || misplaced.Rescued != moved.Rescued ||
		misplaced.Answered != moved.Expected || misplaced.Tip != moved.Actual || misplaced.Branch != "main" {
		t.Fatalf("it is put after what it did not answer: %v", err)
	}
	if kinds(t, repo, "main") != "user user" || len(must(repo.Rescues(t.Context()))(t)) != 1 {
		t.Error("the refusal changed something")
	}
	ids := must(main.TakeRescue(t.Context(), moved.Rescued, tract.RescueOptions{Anywhere: true}))(t)
	if kinds(t, repo, "main") != "user user reasoning assistant" || len(ids) != 2 {
		t.Error(kinds(t, repo, "main"))
	}
	taken := must(repo.Show(t.Context(), "main"))(t)
	if taken.Origin.Usage.Output != 5 || taken.Index != 1 {
		t.Errorf("taken with %+v", taken.Origin)
	}
}

// TestAKeptReplyBeginsABranch puts a response that came too late on a branch of its own,
// as it is: nothing is committed anew.
func TestAKeptReplyBeginsABranch(t *testing.T) {
	repo := open(t)
	m := says(think("hm"), content.Assistant("Blue."))
	m.between = func() { must(repo.Branch("main").AppendUser(t.Context(), "Wait!"))(t) }
	_, err := repo.Branch("main").Ask(t.Context(), m, "Colour?", tract.AskOptions{})
	var moved *tract.ConflictError
	if !errors.As(err, &moved) {
		t.Fatal(err)
	}
	if _, err := repo.Branch("no..name").TakeRescue(t.Context(), moved.Rescued, tract.RescueOptions{}); err == nil {
		t.Error("a branch has a name that none may have")
	}
	kept := must(repo.Rescues(t.Context()))(t)[0].Commits
	late := repo.Branch("late")
	ids := must(late.TakeRescue(t.Context(), moved.Rescued, tract.RescueOptions{}))(t)
	if kinds(t, repo, "late") != "user reasoning assistant" || len(ids) != 2 || ids[1] != kept[1].ID || kept[0].Parent() != moved.Expected {
		t.Errorf("%s, %v", kinds(t, repo, "late"), ids)
	}
	if kinds(t, repo, "main") != "user user" || len(must(repo.Rescues(t.Context()))(t)) != 0 {
		t.Error(kinds(t, repo, "main"))
	}
	must(repo.Undo(t.Context(), tract.UndoOptions{}))(t)
	if tip := must(late.Tip(t.Context()))(t); !tip.IsZero() || len(must(repo.Rescues(t.Context()))(t)) != 1 {
		t.Error("undo does not take it back")
	}
}

func TestAFailedQuestionStaysAndCanBeAskedAgain(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := &model{answers: []answer{{err: &llm.APIError{Provider: "x", Status: 500}}}}
	var api *llm.APIError
	if _, err := main.Ask(t.Context(), m, "Colour?", tract.AskOptions{}); !errors.As(err, &api) {
		t.Fatalf("%v", err)
	}
	if kinds(t, repo, "main") != "user" || len(must(repo.Rescues(t.Context()))(t)) != 0 {
		t.Error(kinds(t, repo, "main"))
	}
	must(main.Generate(t.Context(), m.then(content.Assistant("Blue.")), tract.AskOptions{}))(t)
	if kinds(t, repo, "main") != "user assistant" {
		t.Error(kinds(t, repo, "main"))
	}
}

func TestARepeatedChatIsPaidOnce(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("hm"), content.Assistant("Blue."))
	first := must(main.Ask(t.Context(), m, "Colour?", tract.AskOptions{Key: "k1"}))(t)
	again := must(main.Ask(t.Context(), m, "Colour?", tract.AskOptions{Key: "k1"}))(t)
	if !slices.Equal(first.Commits, again.Commits) || again.Text != "Blue." || again.Reasoning != "hm" || again.Usage.Output != 5 || len(m.asked) != 1 {
		t.Errorf("first %+v, again %+v, asked %d times", first, again, len(m.asked))
	}
}

func TestPrepareAndAccept(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.AppendUser(t.Context(), "Colour?"))(t)
	x := must(main.Prepare(t.Context(), plainTarget{}, tract.PrepareOptions{AskOptions: tract.AskOptions{Settings: map[string]string{"model": "m2"}}}))(t)
	if string(x.Body) != "user: Colour?\n" || x.Request.Settings.Model != "m2" {
		t.Fatalf("body %q", x.Body)
	}
	r := must(main.Accept(t.Context(), x, strings.NewReader("reasoning: hm\nassistant: Blue.\n")))(t)
	if r.Text != "Blue." || kinds(t, repo, "main") != "user reasoning assistant" {
		t.Errorf("%+v", r)
	}
	var moved *tract.ConflictError
	if _, err := main.Accept(t.Context(), x, strings.NewReader("assistant: late")); !errors.As(err, &moved) {
		t.Errorf("an exchange accepted twice: %v", err)
	}
	var broken *tract.IncompleteError
	x = must(main.Prepare(t.Context(), plainTarget{}, tract.PrepareOptions{}))(t)
	if _, err := main.Accept(t.Context(), x, strings.NewReader("reasoning: hm\ncut: Bl")); !errors.As(err, &broken) || broken.Response.Reasoning != "hm" {
		t.Errorf("a cut body: %v", err)
	}
}

func TestEveryResponseHasAManifest(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(onlyID(main.Append(t.Context(), []content.Block{content.System("Be brief.")}, tract.AppendOptions{})))(t)
	tool := llm.Tool{Name: "weather", Schema: []byte(`{"type":"object"}`)}
	m := says(think("a"), call("1")).then(think("b"), content.Assistant("Cold.")).then(content.Assistant("Bye."))
	var prev objects.ID
	for _, step := range []func(){
		func() {
			must(main.Ask(t.Context(), m, "Weather?", tract.AskOptions{Tools: []llm.Tool{tool}, Settings: map[string]string{"model": "m1"}}))(t)
		},
		func() {
			must(main.Append(t.Context(), []content.Block{result("1")}, tract.AppendOptions{}))(t)
			must(main.Generate(t.Context(), m, tract.AskOptions{Tools: []llm.Tool{tool}}))(t)
		},
		func() { must(main.Ask(t.Context(), m, "Bye", tract.AskOptions{IncludeReasoning: true}))(t) },
	} {
		step()
		last := must(repo.Show(t.Context(), "main"))(t)
		manifest := must(compile.ReadManifest(t.Context(), repo.Store(), last.Origin.Manifest))(t)
		if manifest.Prev != prev {
			t.Error("manifests are not chained")
		}
		flags := must(compile.ReadSentFlags(t.Context(), repo.Store(), last.Origin.Manifest))(t)
		again := must(compile.Chain(t.Context(), repo.Store(), manifest.Head, manifest.Options))(t)
		if !slices.Equal(flags, again.SentFlags()) {
			t.Errorf("sent %v, compiled again %v", flags, again.SentFlags())
		}
		prev = last.Origin.Manifest
	}
	if last := must(repo.Show(t.Context(), "main~5"))(t); last.Origin.Settings["model"] != "m1" {
		t.Errorf("settings of %s: %v", last.Kind, last.Origin.Settings)
	}
}

func TestAStoreThatFailsLosesNothing(t *testing.T) {
	// A store that cannot be written gives the reply back in the error.
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("hm"), content.Assistant("Blue."))
	must(main.AppendUser(t.Context(), "Colour?"))(t)
	m.between = func() { _ = repo.Close() }
	var unsaved *tract.UnsavedError
	if _, err := main.Generate(t.Context(), m, tract.AskOptions{}); !errors.As(err, &unsaved) || unsaved.Response.Text != "Blue." || !errors.Is(err, objects.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// hangsUp is a store whose connection breaks once, after a batch was written.
type hangsUp struct {
	objects.Store

	then func() // what others do before it is asked again
}

func (s *hangsUp) Apply(ctx context.Context, b objects.Batch) error {
	return s.breakAfter(s.Store.Apply(ctx, b))
}

func (s *hangsUp) Update(ctx context.Context, ref string, f func(objects.ID) (objects.Batch, error)) error {
	return s.breakAfter(s.Store.Update(ctx, ref, f))
}

func (s *hangsUp) breakAfter(err error) error {
	if then := s.then; err == nil && then != nil {
		s.then = nil
		then()
		err = objects.Unknown(errors.New("the connection broke"))
	}
	return err
}

// TestResponseOfUnknownOutcomeIsCommittedOnce checks that a write whose outcome was unknown is found
// again, also below a commit that another writer added meanwhile.
func TestResponseOfUnknownOutcomeIsCommittedOnce(t *testing.T) {
	for want, next := range map[string]string{"user assistant": "", "user assistant user": "Next?"} {
		inner := objects.Memory()
		store := &hangsUp{Store: inner}
		repo := repoOf(t, store)
		must(repo.Branch("main").AppendUser(t.Context(), "Colour?"))(t)
		store.then = func() {
			if next != "" {
				must(repoOf(t, inner).Branch("main").AppendUser(t.Context(), next))(t)
			}
		}
		if r, err := repo.Branch("main").Generate(t.Context(), says(content.Assistant("Blue.")), tract.AskOptions{}); err != nil || len(r.Commits) != 1 {
			t.Errorf("want %s: %+v, %v", want, r, err)
		}
		if got := kinds(t, repo, "main"); got != want || store.then != nil || len(must(repo.Rescues(t.Context()))(t)) != 0 {
			t.Errorf("the branch has %s, want %s", got, want)
		}
	}
}

// TestWriteOfUnknownOutcomeIsWrittenOnce: every write is repeated when its outcome is
// unknown, and finds what it wrote.
func TestWriteOfUnknownOutcomeIsWrittenOnce(t *testing.T) {
	for name, write := range map[string]func(repo *tract.Repo) error{
		"edit": func(repo *tract.Repo) error {
			_, err := repo.Branch("main").Edit(t.Context(), "main", "Color?", tract.EditOptions{})
			return err
		},
		"merge": func(repo *tract.Repo) error {
			_, err := repo.Branch("main").Merge(t.Context(), "other", tract.MergeOptions{})
			return err
		},
		"append": func(repo *tract.Repo) error {
			_, err := repo.Branch("main").AppendUser(t.Context(), "Size?")
			return err
		},
	} {
		store := &hangsUp{Store: objects.Memory()}
		repo := repoOf(t, store)
		main := repo.Branch("main")
		must(main.AppendUser(t.Context(), "Begin."))(t)
		must(main.Fork(t.Context(), "other", "main"))(t)
		must(repo.Branch("other").AppendUser(t.Context(), "Elsewhere."))(t)
		must(main.AppendUser(t.Context(), "Colour?"))(t)
		tip := must(main.Tip(t.Context()))(t)
		store.then = func() {}
		if err := write(repo); err != nil || store.then != nil {
			t.Errorf("%s: %v", name, err)
		}
		c := must(repo.Show(t.Context(), "main"))(t)
		if c.Parent() != tip {
			t.Errorf("%s: the tip is %s", name, c.Op)
		}
	}
}

func TestUsageIsCountedOnceForAMessage(t *testing.T) {
	repo := open(t)
	must(repo.Branch("main").Ask(t.Context(), says(think("hm"), content.Assistant("a"), call("1")), "Q", tract.AskOptions{}))(t)
	origins := map[objects.ID]*commit.Origin{}
	for c, err := range repo.Log(t.Context(), "main", tract.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		origins[c.OriginID] = c.Origin
	}
	if len(origins) != 2 {
		t.Errorf("%d origins, want the user's and the reply's", len(origins))
	}
	var output int64
	for reply, err := range inspect.Usage(t.Context(), repo, inspect.UsageOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		output += reply.Commit.Origin.Usage.Output
	}
	if output != 5 {
		t.Errorf("%d tokens of output, want 5", output)
	}
}

// TestAnInvalidFormatIsRefusedBeforeTheModelIsAsked: what a caller makes himself is checked
// when it is added. What a model has answered is paid for, and kept as it is.
func TestAnInvalidFormatIsRefusedBeforeTheModelIsAsked(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	own := content.Reasoning{Text: "hm", Format: "mine"}
	m := says(own, assistant("Hello."))
	_, err := main.Append(t.Context(), []content.Block{user("Hi."), own}, tract.AppendOptions{})
	if err == nil || !strings.Contains(err.Error(), `reasoning format "mine": want one of [parsed raw`) {
		t.Errorf("an invalid format: %v", err)
	}
	if len(m.asked) > 0 {
		t.Error("the model was asked")
	}
	if tip := must(main.Tip(t.Context()))(t); !tip.IsZero() {
		t.Error("part of it was committed")
	}
	r := must(main.Ask(t.Context(), m, "Hi.", tract.AskOptions{}))(t)
	if len(r.Commits) != 2 || must(repo.Show(t.Context(), r.Commits[0].String()))(t).Block.(content.Reasoning).Format != "mine" {
		t.Errorf("the reply was not kept: %v", r.Blocks)
	}
}
