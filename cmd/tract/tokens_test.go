package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/priority"
)

// numbers is what one view says of a prompt, in tokens.
type numbers struct {
	Tokens struct {
		Raw, Effective, Hidden int
		HiddenReasoning        int `json:"hidden_reasoning"`
	}
	Entries []struct {
		Op, Kind string
		Sent     bool
		Tokens   int
	}
	Scale  struct{ Factor float64 }
	Budget struct{ Used int }
}

// TestTokenCountsAgreeEverywhere compares compile, compile --budget, compile --explain,
// status, usage and reasoning stats, as JSON and as text, over several histories.
func TestTokenCountsAgreeEverywhere(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	think := func(n int) content.Block { return content.Reasoning{Text: strings.Repeat("why? ", n)} }
	for name, fill := range map[string]func(t *testing.T, b *tract.Branch){
		"nothing reported": func(t *testing.T, b *tract.Branch) {
			say(t, b, 300)
			reply(t, b, "m-1", content.Usage{Output: 1}, think(2000), content.Assistant("Because."))
			say(t, b, 77)
		},
		"input reported": func(t *testing.T, b *tract.Branch) {
			for i := range 9 {
				say(t, b, 333*i)
				reply(t, b, "m-1", content.Usage{Input: int64(700 + 150*i), Output: 9}, think(11*i), think(3), content.Assistant("Because."))
			}
		},
		"reasoning reported": func(t *testing.T, b *tract.Branch) {
			for i := range 3 {
				say(t, b, 3000)
				reply(t, b, "m-1", content.Usage{Input: int64(2500 * (i + 1)), Output: 900, Reasoning: 700}, think(40), content.Assistant("Because."))
			}
		},
		"two models, an edit and a summary": func(t *testing.T, b *tract.Branch) {
			for i := range 6 {
				say(t, b, 900)
				reply(t, b, fmt.Sprint("m-", i%2), content.Usage{Input: int64(500 * (i + 1)), Output: 90, Reasoning: int64(20 * (i % 2))}, think(40), content.Assistant("Because."))
			}
			must(t, fails(b.Edit(t.Context(), "HEAD~2", "What?", tract.EditOptions{})))
			must(t, fails(b.Compress(t.Context(), "", tract.CompressOptions{Text: "They spoke."})))
			must(t, fails(b.Annotate(t.Context(), "HEAD~3", priority.Skip, "")))
			say(t, b, 10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			command(t, codeOK, "init", dir)
			repo, err := tract.Open(t.Context(), "bolt:"+dir+"/.tract", tract.OpenOptions{})
			must(t, err)
			fill(t, repo.Branch("main"))
			must(t, repo.Close())
			compareViews(t, dir)
		})
	}
}

func fails[T any](_ T, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, b *tract.Branch, size int) {
	t.Helper()
	must(t, fails(b.AppendUser(t.Context(), strings.Repeat("x", size)+"?")))
}

func reply(t *testing.T, b *tract.Branch, model string, u content.Usage, blocks ...content.Block) {
	t.Helper()
	must(t, fails(b.AppendResponse(t.Context(), &llm.Response{Blocks: blocks, Head: llm.Head{Model: model, Usage: u}}, tract.AppendOptions{})))
}

func compareViews(t *testing.T, dir string) {
	t.Helper()
	var compiled, budgeted, status numbers
	view := func(to any, args ...string) {
		t.Helper()
		out, _ := command(t, codeOK, append(args, "--json", "--dir", dir)...)
		if err := json.Unmarshal([]byte(out), to); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	view(&compiled, "compile")
	view(&budgeted, "compile", "--budget", strconv.Itoa(compiled.Tokens.Effective))
	view(&status, "status")
	if budgeted.Tokens != compiled.Tokens || status.Tokens != compiled.Tokens {
		t.Errorf("compile %+v, with that as its budget %+v, status %+v", compiled.Tokens, budgeted.Tokens, status.Tokens)
	}
	if status.Scale != compiled.Scale || budgeted.Scale != compiled.Scale {
		t.Errorf("factors of compile %v, with a budget %v, of status %v", compiled.Scale, budgeted.Scale, status.Scale)
	}
	if compiled.Tokens.HiddenReasoning < 20 {
		t.Fatalf("there is too little reasoning to compare: %+v", compiled.Tokens)
	}
	var sum numbers
	for _, e := range compiled.Entries {
		sum.Tokens.Raw += e.Tokens
		switch {
		case e.Sent:
			sum.Tokens.Effective += e.Tokens
		case e.Kind == "reasoning":
			sum.Tokens.HiddenReasoning += e.Tokens
		default:
			sum.Tokens.Hidden += e.Tokens
		}
	}
	if sum.Tokens != compiled.Tokens {
		t.Errorf("rows add up to %+v, the prompt has %+v", sum.Tokens, compiled.Tokens)
	}
	var stats []struct{ Traces, Tokens, Reported, Unreported int }
	view(&stats, "reasoning", "stats", "--by", "model")
	var used []struct {
		Estimated bool
		Usage     struct{ Reasoning int }
	}
	view(&used, "usage", "--by", "model")
	thoughts, reported, unreported, spent, about := 0, 0, 0, 0, false
	for _, s := range stats {
		thoughts, reported, unreported = thoughts+s.Tokens, reported+s.Reported, unreported+s.Unreported
	}
	for _, u := range used {
		spent, about = spent+u.Usage.Reasoning, about || u.Estimated
	}
	if thoughts != compiled.Tokens.HiddenReasoning {
		t.Errorf("reasoning stats has %d tokens, the prompt leaves out %d", thoughts, compiled.Tokens.HiddenReasoning)
	}
	switch {
	case about != (unreported > 0), spent != status.Budget.Used,
		reported == 0 && spent != thoughts, unreported == 0 && spent != reported, spent < reported:
		t.Errorf("usage has %d of reasoning (estimated %v), status %d, reasoning stats %d and %d reported, without %d", spent, about, status.Budget.Used, thoughts, reported, unreported)
	}
	compareText(t, dir, compiled, thoughts, spent)
}

// compareText compares what people read.
func compareText(t *testing.T, dir string, want numbers, thoughts, spent int) {
	t.Helper()
	text := func(args ...string) string {
		t.Helper()
		out, _ := command(t, codeOK, append(args, "--dir", dir)...)
		return strings.ReplaceAll(out, ",", "")
	}
	line := fmt.Sprintf("%d tokens effective %d raw", want.Tokens.Effective, want.Tokens.Raw)
	for _, args := range [][]string{{"compile"}, {"compile", "--budget", strconv.Itoa(want.Tokens.Effective)}, {"compile", "--explain"}, {"status"}} {
		if out := text(args...); !strings.Contains(out, line) {
			t.Errorf("%v does not say %q:\n%s", args, line, out)
		}
	}
	if got := add(text("compile", "--explain"), `(?m)^[+-]  \S+  \S+ +\S+ +(\d+)  `); got != want.Tokens.Raw {
		t.Errorf("the rows of --explain add up to %d, want %d", got, want.Tokens.Raw)
	}
	if got := add(text("reasoning", "stats"), `about (\d+) tokens`); got != thoughts {
		t.Errorf("reasoning stats says %d, want %d", got, thoughts)
	}
	if got := add(text("usage"), `(\d+) reasoning`); got != spent {
		t.Errorf("usage says %d of reasoning, want %d", got, spent)
	}
}

// add adds up the numbers that a pattern finds.
func add(text, pattern string) (sum int) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}
