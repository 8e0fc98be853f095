package tract_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func callOf(id string) content.Block {
	return content.ToolCall{CallID: id, Name: "search", Arguments: "{}"}
}
func resultOf(id string) content.Block { return content.ToolResult{CallID: id, Text: "found"} }

// TestAResultAnswersACallThatWaits: any other result would be in no prompt, and is refused.
func TestAResultAnswersACallThatWaits(t *testing.T) {
	question, answer := content.User("Q"), content.Assistant("A")
	for name, c := range map[string]struct {
		before, blocks []content.Block
		want           string // part of the error; empty: there is none
	}{
		"it waits":                    {[]content.Block{question, callOf("1")}, []content.Block{resultOf("1")}, ""},
		"all wait":                    {[]content.Block{question, callOf("1"), callOf("2"), callOf("3")}, []content.Block{resultOf("2"), resultOf("1")}, ""},
		"others are answered":         {[]content.Block{question, callOf("1"), callOf("2"), resultOf("2")}, []content.Block{resultOf("1")}, ""},
		"with its call":               {nil, []content.Block{callOf("1"), resultOf("1")}, ""},
		"an id that is used again":    {[]content.Block{callOf("1"), resultOf("1")}, []content.Block{callOf("1"), resultOf("1")}, ""},
		"the newest of two of an id":  {[]content.Block{callOf("1"), resultOf("1"), callOf("1")}, []content.Block{resultOf("1")}, ""},
		"then the user speaks":        {[]content.Block{callOf("1")}, []content.Block{resultOf("1"), question}, ""},
		"of a provider's own tool":    {nil, []content.Block{content.ToolResult{CallID: "1", Server: true}}, ""},
		"an empty history":            {nil, []content.Block{resultOf("1")}, "no call of that id is on branch main"},
		"no call":                     {[]content.Block{question, callOf("1")}, []content.Block{resultOf("2")}, "no call of that id is on branch main"},
		"one of two has no call":      {[]content.Block{question, callOf("1")}, []content.Block{resultOf("1"), resultOf("2")}, `"2": no call`},
		"the call comes after":        {nil, []content.Block{resultOf("1"), callOf("1")}, "no call"},
		"a second result":             {[]content.Block{question, callOf("1"), resultOf("1"), answer}, []content.Block{resultOf("1")}, "has a result already"},
		"a second result, turns ago":  {[]content.Block{callOf("1"), resultOf("1"), answer, question, answer}, []content.Block{resultOf("1")}, "has a result already"},
		"two results at once":         {[]content.Block{callOf("1")}, []content.Block{resultOf("1"), resultOf("1")}, "is given two results"},
		"two results with their call": {nil, []content.Block{callOf("1"), resultOf("1"), resultOf("1")}, "is given two results"},
		"a turn too late":             {[]content.Block{callOf("1"), question, answer}, []content.Block{resultOf("1")}, "its turn ended without a result"},
		"after the user speaks":       {[]content.Block{callOf("1")}, []content.Block{question, resultOf("1")}, "its turn ended without a result"},
	} {
		repo := open(t)
		main := repo.Branch("main")
		for _, b := range c.before {
			must(main.Append(t.Context(), []content.Block{b}, tract.AppendOptions{}))(t)
		}
		tip := must(main.Tip(t.Context()))(t)
		ids, err := main.Append(t.Context(), c.blocks, tract.AppendOptions{})
		var refused *tract.ResultError
		switch {
		case c.want == "" && (err != nil || len(ids) != len(c.blocks)):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || refused.Branch != "main" || refused.CallID == ""):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case c.want != "" && must(main.Tip(t.Context()))(t) != tip:
			t.Errorf("%s: the branch moved", name)
		}
	}
}

// TestAResultOfACallThatIsLeftOut is accepted: the call may come back.
func TestAResultOfACallThatIsLeftOut(t *testing.T) {
	main := open(t).Branch("main")
	call := must(main.Append(t.Context(), []content.Block{content.User("Q"), callOf("1")}, tract.AppendOptions{}))(t)[1]
	must(main.Annotate(t.Context(), call.String(), priority.Skip, ""))(t)
	must(main.Append(t.Context(), []content.Block{resultOf("1")}, tract.AppendOptions{}))(t)
}

// TestCheckNotesResultsThatAnswerNoCall where they were imported or recorded: there they are
// kept, for they happened.
func TestCheckNotesResultsThatAnswerNoCall(t *testing.T) {
	blocks := []content.Block{content.User("Q"), callOf("1"), resultOf("1"), resultOf("1"), resultOf("2"), content.Assistant("A")}
	repo := open(t)
	f := tract.ImportedMessage{Branch: "log", Origin: commit.Origin{Importer: "x"}}
	for i, b := range blocks {
		f.Parts = append(f.Parts, tract.ImportedPart{ID: string(rune('a' + i)), Block: b})
	}
	must(repo.Import(t.Context(), inOrder(f), tract.ImportOptions{}))(t)
	must(repo.Branch("call").Record(t.Context(), tract.Recording{Messages: []content.Message{{Role: content.RoleUser, Blocks: blocks[:1]}, {Role: content.RoleAssistant, Blocks: blocks[1:2]}, {Role: content.RoleTool, Blocks: blocks[2:5]}}}, tract.AppendOptions{}))(t)
	for _, branch := range []string{"log", "call"} {
		var noted []string
		for _, p := range must(repo.Check(t.Context(), branch, claude(t), tract.RequestOptions{}))(t) {
			if p.Rule == "unmatched-result" && p.Warning && !p.Commit.IsZero() {
				noted = append(noted, p.CallID)
			}
		}
		if !slices.Equal(noted, []string{"1", "2"}) {
			t.Errorf("%s: %v", branch, noted)
		}
	}
}

// TestKeyWithOtherContentIsRefused: under a key that was used, other content is refused.
func TestKeyWithOtherContentIsRefused(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	key := tract.AppendOptions{Key: "k"}
	first := must(main.Append(ctx, []content.Block{content.User("Q"), callOf("1")}, key))(t)
	result := must(main.Append(ctx, []content.Block{resultOf("1")}, tract.AppendOptions{Key: "r"}))(t)
	if again := must(main.Append(ctx, []content.Block{resultOf("1")}, tract.AppendOptions{Key: "r"}))(t); !slices.Equal(again, result) {
		t.Errorf("a result again: %v, want %v", again, result)
	}
	tip := must(main.Tip(ctx))(t)
	for name, other := range map[string]func() error{
		"another text": func() error {
			_, err := main.Append(ctx, []content.Block{content.User("P"), callOf("1")}, key)
			return err
		},
		"fewer blocks": func() error {
			_, err := main.Append(ctx, []content.Block{content.User("Q")}, key)
			return err
		},
		"another kind": func() error {
			_, err := main.Append(ctx, []content.Block{content.System("Q"), callOf("1")}, key)
			return err
		},
		"another result": func() error {
			_, err := main.Append(ctx, []content.Block{content.ToolResult{CallID: "1", Text: "else"}}, tract.AppendOptions{Key: "r"})
			return err
		},
		"another command": func() error {
			_, err := main.Edit(ctx, first[0].String(), "P", tract.EditOptions{Key: "k"})
			return err
		},
		"a question": func() error { _, err := main.Ask(ctx, usageClient{}, "else", tract.AskOptions{Key: "k"}); return err },
		"a reply by hand": func() error {
			_, err := main.AppendResponse(ctx, &llm.Response{Blocks: []content.Block{content.Assistant("A")}}, key)
			return err
		},
	} {
		var used *tract.KeyError
		if err := other(); !errors.As(err, &used) || used.Commit.IsZero() || !strings.Contains(err.Error(), "was used for other content") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := must(main.Tip(ctx))(t); now != tip {
		t.Error("the branch moved")
	}
}

// TestTwoResponsesWithOneID checks that both are kept: the user paid for both.
func TestTwoResponsesWithOneID(t *testing.T) {
	main := open(t).Branch("main")
	var noted []tract.Problem
	reply := func(text string) []objects.ID {
		return must(main.AppendResponse(t.Context(), &llm.Response{Head: llm.Head{ID: "r"}, Blocks: []content.Block{content.Assistant(text)}}, tract.AppendOptions{OnWarning: func(p tract.Problem) { noted = append(noted, p) }}))(t)
	}
	first := reply("one")
	if again := reply("one"); !slices.Equal(first, again) || len(noted) != 0 {
		t.Errorf("%v, again %v: %v", first, again, noted)
	}
	second := reply("two")
	if slices.Equal(first, second) || len(noted) != 1 || noted[0].Commit != first[0] {
		t.Errorf("%v, then %v: %+v", first, second, noted)
	}
	if again := reply("two"); !slices.Equal(second, again) {
		t.Errorf("%v, again %v", second, again)
	}
}
