package inspect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func thoughts(w *inspect.Explanation) string {
	var list []string
	for _, c := range w.Reasoning {
		list = append(list, c.Block.String())
	}
	return strings.Join(list, " | ")
}

// texts is what a prompt sends.
func texts(p *compile.Prompt) string {
	var list []string
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			list = append(list, b.Kind().String()+":"+b.String())
		}
	}
	return strings.Join(list, " | ")
}

func TestWhyFindsTheReasoningOfACall(t *testing.T) {
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
		must(main.Append(t.Context(), blocks, tract.AppendOptions{}))(t)
	}
	for rev, want := range map[string]string{
		"c1": "first", "c2": "first", "c3": "second", "main": "last", "main~1": "last", "c1~1": "first", "main~2": "second", ":/Go.": "",
	} {
		w := must(inspect.Why(t.Context(), repo, rev))(t)
		if thoughts(w) != want {
			t.Errorf("%s: %q led to it, want %q", rev, thoughts(w), want)
		}
		if rev == "c2" && w.Owner != must(repo.Resolve(t.Context(), "c1"))(t) {
			t.Error("the parallel call does not name the one that owns its thoughts")
		}
		if rev == "main" && (w.Question == nil || w.Question.Block.String() != "Go.") {
			t.Error("the answer does not know its question")
		}
	}
	edit := must(main.Edit(t.Context(), "main", "Well done.", tract.EditOptions{}))(t)
	if w := must(inspect.Why(t.Context(), repo, edit.String()))(t); w.Commit.Block.String() != "Done." {
		t.Errorf("an edit leads to %q", w.Commit.Block)
	}
	if _, err := inspect.Why(t.Context(), repo, "nope"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("no such revision: %v", err)
	}
}

func TestWhyNamesWhatShapedThePrompt(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := speaking{model: says(think("hm"), assistant("Yes."))}
	wrong := must(main.AppendUser(t.Context(), "A slip."))(t)
	must(main.AppendUser(t.Context(), "Really?"))(t)
	must(main.Annotate(t.Context(), wrong.String(), priority.Pinned, "no"))(t)
	skip := must(main.Annotate(t.Context(), wrong.String(), priority.Skip, "a slip"))(t)
	must(main.Edit(t.Context(), ":/Really", "Really so?", tract.EditOptions{}))(t)
	edit := must(main.Edit(t.Context(), ":/Really", "Is it?", tract.EditOptions{}))(t)
	must(main.Generate(t.Context(), m, tract.AskOptions{Settings: map[string]string{"temperature": "0.25", "request.extra": `{"a":1}`}}))(t)
	must(main.Edit(t.Context(), ":/Is", "Later.", tract.EditOptions{}))(t)
	w := must(inspect.Why(t.Context(), repo, ":/Yes"))(t)
	if len(w.Shaped) != 2 || w.Shaped[0].ID != skip || w.Shaped[1].ID != edit {
		t.Errorf("%d commits shaped the prompt", len(w.Shaped))
	}
	if texts(w.Prompt) != "user:Is it?" || w.Manifest.RequestSettings["temperature"] != "0.25" || w.Manifest.RequestSettings["request.extra"] != `{"a":1}` {
		t.Errorf("prompt %q, asked %v", texts(w.Prompt), w.Manifest.RequestSettings)
	}
	a := must(inspect.WhyNot(t.Context(), repo, wrong.String(), ":/Yes"))(t)
	if a.InPrompt || a.By == nil || a.By.ID != skip || a.Why != "annotated: a slip" || a.Response == nil {
		t.Errorf("why not: %+v", a)
	}
	if _, err := inspect.WhyNot(t.Context(), repo, "main", ":/Yes"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("what came later: %v", err)
	}
	repo = open(t)
	main = repo.Branch("main")
	for _, text := range []string{"one", "two", "three"} {
		must(main.Append(t.Context(), []content.Block{user(text), assistant(text + "!")}, tract.AppendOptions{}))(t)
	}
	summary := must(summaryID(main.Compress(t.Context(), "main~2", tract.CompressOptions{Text: "They counted to two."})))(t)
	must(main.Ask(t.Context(), speaking{model: says(assistant("cuatro"))}, "four", tract.AskOptions{}))(t)
	if w := must(inspect.Why(t.Context(), repo, "main"))(t); len(w.Shaped) != 1 || w.Shaped[0].ID != summary {
		t.Errorf("with a summary, %d commits shaped the prompt", len(w.Shaped))
	}
}

// TestWhyAndBlameOverMerges: what a merge brought is explained like all else, and what
// was said after it by what stands before it in the prompt.
func TestWhyAndBlameOverMerges(t *testing.T) {
	repo := open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	text := must(main.AppendUser(t.Context(), "one\ntwo\nthree\nfour"))(t)
	must(main.Append(t.Context(), []content.Block{assistant("Fine.")}, tract.AppendOptions{}))(t)
	must(main.Fork(t.Context(), "side", "main"))(t)
	ours := must(main.Edit(t.Context(), text.String(), "ONE\ntwo\nthree\nfour", tract.EditOptions{}))(t)
	must(main.Append(t.Context(), []content.Block{user("ours?"), assistant("ours.")}, tract.AppendOptions{}))(t)
	theirs := must(side.Edit(t.Context(), text.String(), "one\ntwo\nthree\nFOUR", tract.EditOptions{}))(t)
	m := speaking{model: says(think("aside"), assistant("theirs."))}
	must(side.Ask(t.Context(), m, "theirs?", tract.AskOptions{}))(t)
	must(main.Merge(t.Context(), "side", tract.MergeOptions{Resolve: func(tract.Conflict) (*tract.Change, error) {
		return &tract.Change{Text: "ONE\ntwo\nTHREE\nFOUR"}, nil
	}}))(t)
	after := must(main.Append(t.Context(), []content.Block{think("and so"), assistant("More.")}, tract.AppendOptions{}))(t)

	brought := must(inspect.Why(t.Context(), repo, ":/theirs."))(t)
	if thoughts(brought) != "aside" || brought.Question.Block.String() != "theirs?" || brought.Prompt == nil {
		t.Errorf("what the second parent brought: %q, %v, %v", thoughts(brought), brought.Question, brought.Prompt)
	}
	if w := must(inspect.Why(t.Context(), repo, after[1].String()))(t); w.Question.Block.String() != "theirs?" || !strings.HasSuffix(thoughts(w), "and so") {
		t.Errorf("what was said after the merge: %q after %q", thoughts(w), w.Question.Block)
	}
	var said []string
	for _, l := range blame(t, repo) {
		if l.Block != text {
			said = append(said, l.Text)
			continue
		}
		who := map[objects.ID]string{text: "first", ours: "ours", theirs: "theirs"}[l.Commit.ID]
		said = append(said, l.Text+" "+who)
	}
	if got, want := strings.Join(said, ", "), "ONE ours, two first, THREE , FOUR theirs, Fine., ours?, ours., theirs?, theirs., More."; got != want {
		t.Errorf("blame says %s\nwant %s", got, want)
	}
}
