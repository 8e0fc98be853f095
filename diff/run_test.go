package diff

import (
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
)

func run(t *testing.T, blocks ...content.Block) []*commit.Commit {
	t.Helper()
	var drafts []commit.Draft
	for _, b := range blocks {
		drafts = append(drafts, commit.Draft{Block: b})
	}
	commits, _, err := commit.Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return commits
}

func thought(s string) content.Block { return content.Reasoning{Text: s} }
func called(id, name, args string) content.Block {
	return content.ToolCall{CallID: id, Name: name, Arguments: args}
}
func gave(id, text string) content.Block { return content.ToolResult{CallID: id, Text: text} }

func TestRunsNameTheFirstDifferenceOfEachPart(t *testing.T) {
	a := run(t,
		thought("look"), called("1", "ls", `{"dir": "."}`), gave("1", "x"),
		thought("read x"), called("2", "cat", `{"file":"x"}`), gave("2", "one"),
		called("3", "rm", `{}`), gave("3", "gone"), content.Assistant("done"))
	b := run(t,
		thought("look"), called("a", "ls", `{"dir":"."}`), gave("a", "x"),
		thought("perhaps x"), called("b", "cat", `{"file":"y"}`), gave("b", "two"),
		called("c", "mv", `{}`), gave("c", "there"))
	r := Runs(a, b)
	if r.Same != 1 || r.Steps != [2]int{4, 3} {
		t.Errorf("%d steps are the same of %v", r.Same, r.Steps)
	}
	want := []struct {
		part Part
		step int
		a    string
	}{
		{PartReasoning, 2, "read x"}, {PartArguments, 2, `{"file":"x"}`}, {PartResult, 2, "one"}, {PartCall, 3, `{}`},
	}
	if len(r.First) != len(want) {
		t.Fatalf("%d points, want %d: %+v", len(r.First), len(want), r.First)
	}
	for i, w := range want {
		if p := r.First[i]; p.Part != w.part || p.Step != w.step || p.A[0].Block.String() != w.a {
			t.Errorf("point %d is %s of step %d, want %s of %d", i, p.Part, p.Step, w.part, w.step)
		}
	}
	if !Runs(a, a).Equal() {
		t.Error("a run differs from itself")
	}
	if short := Runs(a, a[:3]); len(short.First) == 0 || len(short.First[0].B) != 0 || short.Same != 1 {
		t.Errorf("a run that ended early: %+v", short)
	}
}
