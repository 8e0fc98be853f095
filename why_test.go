package tract_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// speaking is a model with a wire format.
type speaking struct {
	*model
	plainTarget
}

func lines(*compile.Manifest) (llm.Target, error) { return plainTarget{}, nil }

func thoughts(w *tract.Why) string {
	var list []string
	for _, c := range w.Reasoning {
		list = append(list, c.Block.String())
	}
	return strings.Join(list, " | ")
}

func TestWhyFindsTheThoughtsThatLedToACall(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	for _, blocks := range [][]content.Block{
		{user("Go.")},
		{think("first"), call("c1"), call("c2")},
		{result("c1"), result("c2")},
		{think("second"), call("c3")},
		{result("c3")},
		{think("last"), assistant("Done.")},
	} {
		must(main.Append(t.Context(), blocks))(t)
	}
	for rev, want := range map[string]string{
		"c1": "first", "c2": "first", "c3": "second", "main": "last", "main~1": "last", "c1~1": "first", "main~2": "second", ":/Go.": "",
	} {
		w := must(repo.Why(t.Context(), rev))(t)
		if thoughts(w) != want {
			t.Errorf("%s: %q led to it, want %q", rev, thoughts(w), want)
		}
		if rev == "c2" && w.Ref != must(repo.Resolve(t.Context(), "c1"))(t) {
			t.Error("the parallel call does not name the one that owns its thoughts")
		}
		if rev == "main" && (w.Question == nil || w.Question.Block.String() != "Go.") {
			t.Error("the answer does not know its question")
		}
	}
	edit := must(main.Edit(t.Context(), "main", "Well done."))(t)
	if w := must(repo.Why(t.Context(), edit.String()))(t); w.Commit.Block.String() != "Done." {
		t.Errorf("an edit leads to %q", w.Commit.Block)
	}
	if _, err := repo.Why(t.Context(), "nope"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("no such revision: %v", err)
	}
}

func TestWhyNamesWhatShapedThePrompt(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := speaking{model: says(think("hm"), assistant("Yes."))}
	wrong := must(main.User(t.Context(), "A slip."))(t)
	must(main.User(t.Context(), "Really?"))(t)
	must(main.Annotate(t.Context(), wrong.String(), priority.Pinned, "no"))(t)
	skip := must(main.Annotate(t.Context(), wrong.String(), priority.Skip, "a slip"))(t)
	must(main.Edit(t.Context(), ":/Really", "Really so?"))(t)
	edit := must(main.Edit(t.Context(), ":/Really", "Is it?"))(t)
	must(main.Generate(t.Context(), m, tract.Set("temperature", "0.25"), tract.Set("request.extra", `{"a":1}`)))(t)
	must(main.Edit(t.Context(), ":/Is", "Later."))(t)
	w := must(repo.Why(t.Context(), ":/Yes"))(t)
	if len(w.Shaped) != 2 || w.Shaped[0].ID != skip || w.Shaped[1].ID != edit {
		t.Errorf("%d commits shaped the prompt", len(w.Shaped))
	}
	if messages(w.Prompt.Messages) != "user:Is it?" || w.Request.Asked["temperature"] != "0.25" || w.Request.Asked["request.extra"] != `{"a":1}` {
		t.Errorf("prompt %q, asked %v", messages(w.Prompt.Messages), w.Request.Asked)
	}
	a := must(repo.WhyNot(t.Context(), wrong.String(), ":/Yes"))(t)
	if a.Sent || a.By == nil || a.By.ID != skip || a.Why != "annotated: a slip" || a.Reply == nil {
		t.Errorf("why not: %+v", a)
	}
	if _, err := repo.WhyNot(t.Context(), "main", ":/Yes"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("what came later: %v", err)
	}
	repo, main = toldStory(t)
	summary := must(main.Compress(t.Context(), "main~2", "They counted to two."))(t)
	must(main.Chat(t.Context(), speaking{model: says(assistant("cuatro"))}, "four"))(t)
	if w := must(repo.Why(t.Context(), "main"))(t); len(w.Shaped) != 1 || w.Shaped[0].ID != summary {
		t.Errorf("with a summary, %d commits shaped the prompt", len(w.Shaped))
	}
}

func TestVerifyTellsWhatBecameOfARequest(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := speaking{model: says(assistant("one")).then(think("kept in memory"), call("c1")).then(assistant("two"))}
	must(main.Chat(t.Context(), m, "first"))(t)
	verdicts := func(targets tract.Targets) string {
		var list []string
		for x, err := range repo.Verify(t.Context(), targets, nil, "main") {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(x.Verdict))
		}
		return strings.Join(list, ", ")
	}
	if got := verdicts(lines); got != "same" {
		t.Errorf("verdict %q", got)
	}
	other := func(encoder int) tract.Targets {
		return func(*compile.Manifest) (llm.Target, error) { return shouting{encoder: encoder}, nil }
	}
	if got := verdicts(other(1)); got != "differs" {
		t.Errorf("another body: %q", got)
	}
	if got := verdicts(other(2)); got != "older encoder" {
		t.Errorf("another body of another encoder: %q", got)
	}
	unknown := func(*compile.Manifest) (llm.Target, error) { return nil, nil }
	if got := verdicts(unknown); got != "not reproducible" {
		t.Errorf("an unknown dialect: %q", got)
	}
	wants := speaking{model: m.model, plainTarget: plainTarget{wantsTurn: true}}
	must(main.Chat(t.Context(), wants, "second", tract.WithReasoning(false)))(t)
	must(main.Append(t.Context(), []content.Block{result("c1")}))(t)
	must(main.Generate(t.Context(), wants, tract.Force()))(t)
	if got := verdicts(lines); got != "same, same, not reproducible" {
		t.Errorf("with a thought that was not committed: %q", got)
	}
	forgetful := says(assistant("three"))
	must(main.Chat(t.Context(), forgetful, "third"))(t)
	if got := verdicts(lines); !strings.HasSuffix(got, "not reproducible, not reproducible") {
		t.Errorf("a client without a form: %q", got)
	}
}

// shouting is a wire format that has changed.
type shouting struct {
	plainTarget
	encoder int
}

func (s shouting) Address() llm.Address {
	a := s.plainTarget.Address()
	a.Encoder = s.encoder
	return a
}

func (s shouting) Encode(req *llm.Request) ([]byte, error) {
	b, err := s.plainTarget.Encode(req)
	return []byte(strings.ToUpper(string(b))), err
}

// dropping is a client that sends less than it was given, and says so.
type dropping struct{ speaking }

func (d dropping) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	req.OnSent(req.Body[1:])
	return d.speaking.Generate(ctx, req)
}

func TestTheManifestHasWhatWasSentToo(t *testing.T) {
	repo := open(t)
	must(repo.Branch("main").Chat(t.Context(), dropping{speaking{model: says(assistant("ok"))}}, "hello"))(t)
	x := must(repo.Remake(t.Context(), "main", lines))(t)
	if x.Verdict != tract.Same || x.Manifest.Sent != objects.Hash(x.Request.Body[1:]) {
		t.Errorf("%s, sent %s", x.Verdict, x.Manifest.Sent.Short())
	}

	// One of an older version does not say how the model was asked.
	old := *x.Manifest
	old.Asked = nil
	manifest := old.Object()
	question := must(commit.Read(t.Context(), repo.Store(), old.Head))(t)
	reply, put, err := commit.Write(question, commit.Draft{Block: assistant("ok"), Origin: &commit.Origin{Source: commit.SourceModel, Manifest: manifest.ID}})
	if err == nil {
		err = repo.Store().Apply(t.Context(), objects.Batch{Put: append(put, manifest), Refs: []objects.RefUpdate{{Name: "refs/heads/old", New: reply[0].ID}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if x := must(repo.Remake(t.Context(), "old", lines))(t); x.Verdict != tract.Unprovable {
		t.Errorf("a manifest of an older version: %s", x.Verdict)
	}
}

func TestReplayAsksTheSameAgain(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	tool := llm.Tool{Name: "weather", Description: "d", Schema: []byte(`{"type":"object"}`)}
	m := speaking{model: says(think("a"), assistant("one")).then(assistant("two"))}
	must(main.Chat(t.Context(), m, "hello", tract.Set("temperature", "0.5"), tract.Set("reasoning.effort", "high"), tract.Tools(tool), tract.Set("tool_choice", "auto")))(t)
	must(main.User(t.Context(), "later"))(t)
	again := must(repo.Replay(t.Context(), m, ":/one", "again", tract.Set("model", "other")))(t)
	if got := kinds(t, repo, "again"); got != "user assistant" || again.Response.Text != "two" || !again.Same {
		t.Errorf("branch %q, reply %q, same %v", got, again.Response.Text, again.Same)
	}
	first, second := *m.asked[0], *m.asked[1]
	first.Settings.Model = "other"
	first.OnSent, second.OnSent = nil, nil
	if fmt.Sprintf("%+v", first.Tools) != fmt.Sprintf("%+v", second.Tools) || *second.Settings.Temperature != 0.5 ||
		first.Settings.Reasoning != second.Settings.Reasoning || second.Settings.ToolChoice != "auto" || second.Settings.Model != "other" {
		t.Errorf("asked %+v\nthen  %+v", first, second)
	}
	if must(repo.Show(t.Context(), again.Old.String()))(t).Block.String() != "one" {
		t.Error("the old reply is not the one that was named")
	}
	if _, err := repo.Replay(t.Context(), m, ":/one", "again"); !errors.Is(err, objects.ErrExists) {
		t.Errorf("on a branch that is there: %v", err)
	}
}

func TestGrepFindsWordsOfEveryKindOnce(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	for _, blocks := range [][]content.Block{
		{user("one needle\nand hay\nneedle again")},
		{think("needle"), call("needle1")},
		{result("needle1")},
		{content.ToolCall{CallID: "x", Name: "needle", Arguments: "{}"}},
		{content.Reasoning{Parts: []string{"part", "needle"}}},
	} {
		must(main.Append(t.Context(), blocks))(t)
	}
	must(main.Fork(t.Context(), "other", "main~2"))(t)
	must(repo.Branch("other").User(t.Context(), strings.Repeat("hay ", 500_000)+"needle"))(t) // in chunks
	must(main.Annotate(t.Context(), "main", priority.Skip, "a needle"))(t)
	find := func(g tract.Grep) string {
		var list []string
		for m, err := range repo.Grep(t.Context(), g) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprint(m.Commit.Kind, ":", m.Line))
		}
		return strings.Join(list, " ")
	}
	needle := regexp.MustCompile("needle")
	if got, want := find(tract.Grep{Pattern: needle, Revs: []string{"main"}}), "note:1 reasoning:3 tool-call:1 reasoning:1 user:1 user:3"; got != want {
		t.Errorf("found %q\nwant  %q", got, want)
	}
	if got := find(tract.Grep{Pattern: needle, First: true}); strings.Count(got, "user:1") != 2 || strings.Contains(got, "user:3") {
		t.Errorf("in all histories, a line a block: %q", got)
	}
	if got := find(tract.Grep{Pattern: regexp.MustCompile("(?i)^NEEDLE$"), Kinds: []content.Kind{content.KindReasoning}, Revs: []string{"main"}}); got != "reasoning:3 reasoning:1" {
		t.Errorf("whole lines of thoughts: %q", got)
	}
	for range repo.Grep(t.Context(), tract.Grep{Pattern: needle}) {
		break // nobody is held up
	}
}

func TestBlameKeepsWhoSaidALine(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.User(t.Context(), "a\nb\nc\n", tract.Author("ada")))(t)
	must(main.Edit(t.Context(), "main", "a\nB\nc", tract.Author("bob")))(t)
	must(main.Edit(t.Context(), "main~1", "zero\na\nB\nc", tract.Author("eve")))(t)
	got := ""
	for _, l := range must(repo.Blame(t.Context(), "main"))(t) {
		got += l.Said.Author + ":" + l.Text + " "
	}
	if want := "eve:zero ada:a bob:B ada:c "; got != want {
		t.Errorf("blame %q, want %q", got, want)
	}
	must(main.Compress(t.Context(), "main", "all of it", tract.Author("sum")))(t)
	if l := must(repo.Blame(t.Context(), "main"))(t); len(l) != 1 || l[0].Said.Op != commit.Compress || l[0].Said.Author != "sum" {
		t.Errorf("of a summary: %+v", l)
	}
}

// TestWhyAndBlameOverMerges: what a merge brought is explained like all else, and what
// was said after it by what stands before it in the prompt.
func TestWhyAndBlameOverMerges(t *testing.T) {
	repo := open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	text := must(main.User(t.Context(), "one\ntwo\nthree\nfour"))(t)
	must(main.Append(t.Context(), []content.Block{assistant("Fine.")}))(t)
	must(main.Fork(t.Context(), "side", "main"))(t)
	ours := must(main.Edit(t.Context(), text.String(), "ONE\ntwo\nthree\nfour"))(t)
	must(main.Append(t.Context(), []content.Block{user("ours?"), assistant("ours.")}))(t)
	theirs := must(side.Edit(t.Context(), text.String(), "one\ntwo\nthree\nFOUR"))(t)
	m := speaking{model: says(think("aside"), assistant("theirs."))}
	must(side.Chat(t.Context(), m, "theirs?"))(t)
	must(main.Merge(t.Context(), "side", tract.Merging{Resolve: func(tract.Conflict) (*tract.Change, error) {
		return &tract.Change{Text: "ONE\ntwo\nTHREE\nFOUR"}, nil
	}}))(t)
	after := must(main.Append(t.Context(), []content.Block{think("and so"), assistant("More.")}))(t)

	brought := must(repo.Why(t.Context(), ":/theirs."))(t)
	if thoughts(brought) != "aside" || brought.Question.Block.String() != "theirs?" || brought.Prompt == nil {
		t.Errorf("what the second parent brought: %q, %v, %v", thoughts(brought), brought.Question, brought.Prompt)
	}
	if w := must(repo.Why(t.Context(), after[1].String()))(t); w.Question.Block.String() != "theirs?" || !strings.HasSuffix(thoughts(w), "and so") {
		t.Errorf("what was said after the merge: %q after %q", thoughts(w), w.Question.Block)
	}
	var said []string
	for _, l := range must(repo.Blame(t.Context(), "main"))(t) {
		if l.Block != text {
			said = append(said, l.Text)
			continue
		}
		who := map[objects.ID]string{text: "first", ours: "ours", theirs: "theirs"}[l.Said.ID]
		said = append(said, l.Text+" "+who)
	}
	if got, want := strings.Join(said, ", "), "ONE ours, two first, THREE , FOUR theirs, Fine., ours?, ours., theirs?, theirs., More."; got != want {
		t.Errorf("blame says %s\nwant %s", got, want)
	}
}

// TestBlameOfAMergePrefersTheFirstParent: a line that both histories have belongs to
// the edit of the branch that was merged into, however far back that edit lies, and
// whatever the merge decided.
func TestBlameOfAMergePrefersTheFirstParent(t *testing.T) {
	for name, test := range map[string]struct {
		theirs  string // edit on the branch that is merged
		resolve func(c tract.Conflict) *tract.Change
		want    string
	}{
		"a new text": {"both\nside", func(tract.Conflict) *tract.Change {
			return &tract.Change{Text: "both\nmain\nside\nnew"}
		}, "ours:both ours:main theirs:side merge:new"},
		"their text": {"both\nside", func(c tract.Conflict) *tract.Change { return &c.Theirs }, "ours:both theirs:side"},
		"our text":   {"both\nside", func(c tract.Conflict) *tract.Change { return &c.Ours }, "ours:both ours:main"},
		"equal":      {"both\nmain", nil, "ours:both ours:main"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := open(t)
			main, side := repo.Branch("main"), repo.Branch("side")
			text := must(main.User(t.Context(), "first"))(t).String()
			must(main.Append(t.Context(), []content.Block{assistant("Fine.")}))(t)
			must(main.Fork(t.Context(), "side", "main"))(t)
			must(main.Edit(t.Context(), text, "both\nmain", tract.Author("ours")))(t)
			must(main.Append(t.Context(), []content.Block{user("more?"), assistant("more.")}))(t)
			must(side.Edit(t.Context(), text, test.theirs, tract.Author("theirs")))(t)
			m := tract.Merging{Resolve: func(c tract.Conflict) (*tract.Change, error) { return test.resolve(c), nil }}
			must(main.Merge(t.Context(), "side", m, tract.Author("merge")))(t)
			must(main.Append(t.Context(), []content.Block{user("after?")}))(t)
			var got []string
			for _, l := range must(repo.Blame(t.Context(), "main"))(t) {
				if l.Block.String() == text {
					got = append(got, l.Said.Author+":"+l.Text)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("blame %q, want %q", got, test.want)
			}
		})
	}
}
