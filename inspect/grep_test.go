package inspect_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/priority"
)

func TestGrepFindsTextOfEveryKindOnce(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	for _, blocks := range [][]content.Block{
		{user("one needle\nand hay\nneedle again")},
		{think("needle"), call("needle1")},
		{result("needle1")},
		{content.ToolCall{CallID: "x", Name: "needle", Arguments: "{}"}},
		{content.Reasoning{Parts: []string{"part", "needle"}}},
	} {
		must(main.Append(t.Context(), blocks, tract.AppendOptions{}))(t)
	}
	must(main.Fork(t.Context(), "other", "main~2"))(t)
	must(repo.Branch("other").AppendUser(t.Context(), strings.Repeat("hay ", 500_000)+"needle"))(t) // in chunks
	must(main.Annotate(t.Context(), "main", priority.Skip, "a needle"))(t)
	find := func(pattern *regexp.Regexp, o inspect.GrepOptions) string {
		var list []string
		for m, err := range inspect.Grep(t.Context(), repo, pattern, o) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprint(m.Commit.Kind, ":", m.Line))
		}
		return strings.Join(list, " ")
	}
	needle := regexp.MustCompile("needle")
	if got, want := find(needle, inspect.GrepOptions{Revs: []string{"main"}}), "note:1 reasoning:3 tool-call:1 reasoning:1 user:1 user:3"; got != want {
		t.Errorf("found %q\nwant  %q", got, want)
	}
	if got := find(needle, inspect.GrepOptions{First: true}); strings.Count(got, "user:1") != 2 || strings.Contains(got, "user:3") {
		t.Errorf("in all histories, a line a block: %q", got)
	}
	if got := find(regexp.MustCompile("(?i)^NEEDLE$"), inspect.GrepOptions{Kinds: []content.Kind{content.KindReasoning}, Revs: []string{"main"}}); got != "reasoning:3 reasoning:1" {
		t.Errorf("whole lines of thoughts: %q", got)
	}
	for range inspect.Grep(t.Context(), repo, needle, inspect.GrepOptions{}) {
		break // nobody is held up
	}
}

// TestGrepReadsEveryCommitOnce: the first parents of a tip, then what only the other parent of
// a merge has, however many tips lead there.
func TestGrepReadsEveryCommitOnce(t *testing.T) {
	repo := open(t)
	main, other := repo.Branch("main"), repo.Branch("other")
	say := func(b *tract.Branch, texts ...string) {
		for _, text := range texts {
			must(b.AppendUser(t.Context(), text))(t)
		}
	}
	say(main, "base 1", "base 2", "base 3")
	must(main.Fork(t.Context(), "other", "main~1"))(t)
	say(main, "main 1")
	say(other, "other 1", "other 2")
	must(main.Merge(t.Context(), "other", tract.MergeOptions{}))(t)
	say(main, "after")
	var got []string
	for m, err := range inspect.Grep(t.Context(), repo, regexp.MustCompile("."), inspect.GrepOptions{Revs: []string{"main", "other~1", "main"}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Text)
	}
	if got, want := strings.Join(got, ", "), "after, main 1, base 3, base 2, base 1, other 1, other 2"; got != want {
		t.Errorf("found %q\nwant  %q", got, want)
	}
}
