package inspect_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

// blame is the blame of the prompt of branch main.
func blame(t *testing.T, repo *tract.Repo) []inspect.Line {
	t.Helper()
	return must(inspect.Blame(t.Context(), repo, must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)))(t)
}

func TestBlameKeepsAuthorsThroughEdits(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(onlyID(main.Append(t.Context(), []content.Block{content.User("a\nb\nc\n")}, tract.AppendOptions{Author: "ada"})))(t)
	must(main.Edit(t.Context(), "main", "a\nB\nc", tract.EditOptions{Author: "bob"}))(t)
	must(main.Edit(t.Context(), "main~1", "zero\na\nB\nc", tract.EditOptions{Author: "eve"}))(t)
	got := ""
	for _, l := range blame(t, repo) {
		got += l.Commit.Author + ":" + l.Text + " "
	}
	if want := "eve:zero ada:a bob:B ada:c "; got != want {
		t.Errorf("blame %q, want %q", got, want)
	}
	must(summaryID(main.Compress(t.Context(), "main", tract.CompressOptions{Text: "all of it", Author: "sum"})))(t)
	if l := blame(t, repo); len(l) != 1 || l[0].Commit.Op != commit.Compress || l[0].Commit.Author != "sum" {
		t.Errorf("of a summary: %+v", l)
	}
}

// TestBlameOfAMergePrefersTheFirstParent: a line that both histories have belongs to
// the edit of the branch that was merged into, however far back that edit lies, and
// whatever the merge decided.
func TestBlameOfAMergePrefersTheFirstParent(t *testing.T) {
	for name, test := range map[string]struct {
		theirs  string // edit on the branch that is merged
		squash  bool
		resolve func(c tract.Conflict) *tract.Change
		want    string
	}{
		"a new text": {"both\nside", false, func(tract.Conflict) *tract.Change {
			return &tract.Change{Text: "both\nmain\nside\nnew"}
		}, "ours:both ours:main theirs:side merge:new"},
		"their text": {"both\nside", false, func(c tract.Conflict) *tract.Change { return &c.Theirs }, "ours:both theirs:side"},
		"our text":   {"both\nside", false, func(c tract.Conflict) *tract.Change { return &c.Ours }, "ours:both ours:main"},
		"equal":      {"both\nmain", false, nil, "ours:both ours:main"},
		"a squash":   {"both\nside", true, func(c tract.Conflict) *tract.Change { return &c.Theirs }, "ours:both theirs:side"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := open(t)
			main, side := repo.Branch("main"), repo.Branch("side")
			text := must(main.AppendUser(t.Context(), "first"))(t).String()
			must(main.Append(t.Context(), []content.Block{assistant("Fine.")}, tract.AppendOptions{}))(t)
			must(main.Fork(t.Context(), "side", "main"))(t)
			must(main.Edit(t.Context(), text, "both\nmain", tract.EditOptions{Author: "ours"}))(t)
			must(main.Append(t.Context(), []content.Block{user("more?"), assistant("more.")}, tract.AppendOptions{}))(t)
			must(side.Edit(t.Context(), text, test.theirs, tract.EditOptions{Author: "theirs"}))(t)
			m := tract.MergeOptions{Author: "merge", Squash: test.squash, Resolve: func(c tract.Conflict) (*tract.Change, error) { return test.resolve(c), nil }}
			must(main.Merge(t.Context(), "side", m))(t)
			must(main.Append(t.Context(), []content.Block{user("after?")}, tract.AppendOptions{}))(t)
			var got []string
			for _, l := range blame(t, repo) {
				if l.Block.String() == text {
					got = append(got, l.Commit.Author+":"+l.Text)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("blame %q, want %q", got, test.want)
			}
		})
	}
}

// TestBlameWhenTheirsChangedItBack: the merged branch changes a line and changes it back, and
// the branch that was merged into does nothing: the line still belongs to the commit that
// both histories have.
func TestBlameWhenTheirsChangedItBack(t *testing.T) {
	for name, test := range map[string]struct {
		before string // edit before the fork; "": none
		want   string
	}{
		"without an edit before the fork": {"", "block:a block:x"},
		"with an edit before the fork":    {"b\nx", "before:b block:x"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := open(t)
			main, side := repo.Branch("main"), repo.Branch("side")
			text, original := must(onlyID(main.Append(t.Context(), []content.Block{user("a\nx")}, tract.AppendOptions{Author: "block"})))(t).String(), "a\nx"
			if test.before != "" {
				original = test.before
				must(main.Edit(t.Context(), text, original, tract.EditOptions{Author: "before"}))(t)
			}
			must(main.Append(t.Context(), []content.Block{assistant("Fine.")}, tract.AppendOptions{}))(t)
			must(main.Fork(t.Context(), "side", "main"))(t)
			must(main.Append(t.Context(), []content.Block{user("more?"), assistant("more.")}, tract.AppendOptions{}))(t)
			must(side.Edit(t.Context(), text, "y\ny", tract.EditOptions{Author: "theirs"}))(t)
			must(side.Edit(t.Context(), text, original, tract.EditOptions{Author: "theirs"}))(t)
			must(main.Merge(t.Context(), "side", tract.MergeOptions{Author: "merge"}))(t)
			var got []string
			for _, l := range blame(t, repo) {
				if l.Block.String() == text {
					got = append(got, l.Commit.Author+":"+l.Text)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("blame %q, want %q", got, test.want)
			}
		})
	}
}

// TestBlameOfNestedMerges and TestWhyAndBlameOverMerges in why_test.go hold what the edit that resolves a
// conflict takes from each side. TestBlameOfNestedMerges has three branches each change one line of a block; one branch is merged into
// the second, and that into the first. Each line belongs to the edit that changed it, the line that a
// merge adds to the merge, and an edit after the merges owns only the line that it changes.
func TestBlameOfNestedMerges(t *testing.T) {
	repo := open(t)
	main, side, inner := repo.Branch("main"), repo.Branch("side"), repo.Branch("inner")
	text := must(onlyID(main.Append(t.Context(), []content.Block{user("a\nb\nc\nd")}, tract.AppendOptions{Author: "block"})))(t).String()
	must(main.Append(t.Context(), []content.Block{assistant("Fine.")}, tract.AppendOptions{}))(t)
	must(main.Fork(t.Context(), "side", "main"))(t)
	must(main.Fork(t.Context(), "inner", "main"))(t)
	must(main.Edit(t.Context(), text, "A\nb\nc\nd", tract.EditOptions{Author: "main"}))(t)
	must(side.Edit(t.Context(), text, "a\nB\nc\nd", tract.EditOptions{Author: "side"}))(t)
	must(inner.Edit(t.Context(), text, "a\nb\nC\nd", tract.EditOptions{Author: "inner"}))(t)
	merge := func(into *tract.Branch, from, author, text string) {
		must(into.Merge(t.Context(), from, tract.MergeOptions{Author: author, Resolve: func(tract.Conflict) (*tract.Change, error) {
			return &tract.Change{Text: text}, nil
		}}))(t)
	}
	merge(side, "inner", "merge 1", "a\nB\nC\nd")
	merge(main, "side", "merge 2", "A\nB\nC\nd\nnew")
	must(main.Edit(t.Context(), text, "A\nB\nC\nD\nnew", tract.EditOptions{Author: "after"}))(t)
	var got []string
	for _, l := range blame(t, repo) {
		if l.Block.String() == text {
			got = append(got, l.Commit.Author+":"+l.Text)
		}
	}
	if want := "main:A side:B inner:C after:D merge 2:new"; strings.Join(got, " ") != want {
		t.Errorf("blame %q, want %q", got, want)
	}
}

// editHistory is a repo with one block of the lines a, b, c on the branches main, side and inner.
type editHistory struct {
	repo    *tract.Repo
	block   string
	authors map[objects.ID]string // of the edits of steps; an edit that a merge commits again has the author of its source
}

// newEditHistory returns a history whose clock advances by tick with each call.
func newEditHistory(t *testing.T, tick time.Duration) *editHistory {
	t.Helper()
	now := time.Unix(0, 0)
	h := &editHistory{authors: map[objects.ID]string{}, repo: open(t, tract.OpenOptions{Now: func() time.Time {
		now = now.Add(tick)
		return now
	}})}
	main := h.repo.Branch("main")
	id := must(main.AppendUser(t.Context(), "a\nb\nc"))(t)
	h.block, h.authors[id] = id.String(), "block"
	must(main.Append(t.Context(), []content.Block{assistant("Fine.")}, tract.AppendOptions{}))(t)
	for _, name := range []string{"side", "inner"} {
		must(main.Fork(t.Context(), name, "main"))(t)
	}
	return h
}

// blame is the blame of the block, as author:line. The author of an edit that a merge made is merge.
func (h *editHistory) blame(t *testing.T, rev string) string {
	t.Helper()
	var list []string
	for _, l := range must(inspect.Blame(t.Context(), h.repo, must(h.repo.Compile(t.Context(), rev, tract.CompileOptions{}))(t)))(t) {
		if l.Block.String() == h.block {
			list = append(list, cmp.Or(h.authors[l.Commit.ID], "merge")+":"+l.Text)
		}
	}
	return strings.Join(list, " ")
}

// step is one step of a history.
type step func(t *testing.T, h *editHistory)

// edit gives the block other lines on a branch.
func edit(branch, author, lines string) step {
	return func(t *testing.T, h *editHistory) {
		t.Helper()
		text := strings.ReplaceAll(lines, " ", "\n")
		h.authors[must(h.repo.Branch(branch).Edit(t.Context(), h.block, text, tract.EditOptions{}))(t)] = author
	}
}

// extend appends blocks to a branch.
func extend(branch string) step {
	return func(t *testing.T, h *editHistory) {
		t.Helper()
		must(h.repo.Branch(branch).Append(t.Context(), []content.Block{user("more?"), assistant("more.")}, tract.AppendOptions{}))(t)
	}
}

// merge merges a branch with a merge commit. A conflict is resolved with "ours", "theirs", or other lines.
func merge(branch, from, resolve string) step {
	return mergeWith(branch, from, resolve, true)
}

func mergeWith(branch, from, resolve string, noFastForward bool) step {
	return func(t *testing.T, h *editHistory) {
		t.Helper()
		o := tract.MergeOptions{NoFastForward: noFastForward}
		o.Resolve = func(c tract.Conflict) (*tract.Change, error) {
			switch resolve {
			case "ours":
				return &c.Ours, nil
			case "theirs":
				return &c.Theirs, nil
			}
			return &tract.Change{Text: strings.ReplaceAll(resolve, " ", "\n")}, nil
		}
		must(h.repo.Branch(branch).Merge(t.Context(), from, o))(t)
	}
}

// TestBlameOfAnEditAfterAMerge: a line that an edit changes after a merge belongs to that edit, also where
// the edit puts back a line that one side had before the merge.
func TestBlameOfAnEditAfterAMerge(t *testing.T) {
	fix, ours, after := edit("side", "fix", "a FIX c"), edit("main", "ours", "a OURS c"), edit("main", "after", "a b c")
	more, merged := extend("main"), merge("main", "side", "")
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"fast-forward":              {[]step{fix, mergeWith("main", "side", "", false), after}, "block:a after:b block:c"},
		"no fast-forward":           {[]step{fix, merged, after}, "block:a after:b block:c"},
		"no fast-forward, later":    {[]step{fix, merged, more, after}, "block:a after:b block:c"},
		"diverged":                  {[]step{fix, more, merged, after}, "block:a after:b block:c"},
		"diverged, later":           {[]step{fix, more, merged, more, after}, "block:a after:b block:c"},
		"the merged line again":     {[]step{fix, more, merged, edit("main", "after", "a FIX2 c")}, "block:a after:FIX2 block:c"},
		"another line":              {[]step{fix, more, merged, edit("main", "after", "a FIX C")}, "block:a fix:FIX after:C"},
		"theirs, then ours":         {[]step{fix, ours, merge("main", "side", "theirs"), edit("main", "after", "a OURS c")}, "block:a after:OURS block:c"},
		"theirs, then ours, later":  {[]step{fix, ours, merge("main", "side", "theirs"), more, edit("main", "after", "a OURS c")}, "block:a after:OURS block:c"},
		"ours, then theirs":         {[]step{fix, ours, merge("main", "side", "ours"), edit("main", "after", "a FIX c")}, "block:a after:FIX block:c"},
		"resolved, then the first":  {[]step{fix, ours, merge("main", "side", "a BOTH c"), after}, "block:a after:b block:c"},
		"resolved from both":        {[]step{fix, edit("main", "ours", "A b c"), merge("main", "side", "A FIX C")}, "ours:A fix:FIX merge:C"},
		"edited twice":              {[]step{fix, more, merged, edit("main", "one", "a b c"), edit("main", "two", "a FIX c")}, "block:a two:FIX block:c"},
		"on the merged branch":      {[]step{fix, more, merged, edit("side", "after", "a b c"), merged}, "block:a after:b block:c"},
		"merged again":              {[]step{fix, more, merged, after, extend("side"), merged}, "block:a after:b block:c"},
		"nested":                    {[]step{edit("inner", "fix", "a FIX c"), extend("side"), merge("side", "inner", ""), more, merged, after}, "block:a after:b block:c"},
		"nested, edited in between": {[]step{edit("inner", "fix", "a FIX c"), extend("side"), merge("side", "inner", ""), edit("side", "after", "a b c"), edit("main", "ours", "A b c"), merge("main", "side", "A b c")}, "ours:A block:b block:c"},
		"their older text":          {[]step{fix, ours, merge("side", "main", "theirs"), merged}, "block:a ours:OURS block:c"},
		"our older text, by theirs": {[]step{fix, ours, merge("side", "main", "theirs"), edit("main", "later", "a LATER c"), merge("main", "side", "theirs")}, "block:a ours:OURS block:c"},
		"a fork after edits": {[]step{
			edit("main", "one", "a one c"), edit("main", "two", "a two c"), mergeWith("side", "main", "", false),
			edit("side", "side", "a two SIDE"), edit("main", "main", "MAIN two c"), merge("main", "side", "MAIN two SIDE"),
		}, "main:MAIN two:two side:SIDE"},
		"merged both ways": {[]step{fix, ours, merge("side", "main", "theirs"), edit("side", "after", "a FIX c"), merged}, "block:a after:FIX block:c"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newEditHistory(t, time.Second)
			for _, step := range test.steps {
				step(t, h)
			}
			if got := h.blame(t, "main"); got != test.want {
				t.Errorf("blame %q, want %q", got, test.want)
			}
		})
	}
}

// TestBlameOfAnEditAtTheTimeOfAMerge: an edit with the time of the merge before it is not taken for one that
// the merge made, where the merge had nothing to resolve or where blocks follow the merge.
func TestBlameOfAnEditAtTheTimeOfAMerge(t *testing.T) {
	for name, steps := range map[string][]step{
		"nothing to resolve": {edit("side", "fix", "a FIX c"), extend("main"), merge("main", "side", "")},
		"blocks follow":      {edit("side", "fix", "a FIX c"), edit("main", "ours", "a b C"), merge("main", "side", "theirs"), extend("main")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newEditHistory(t, 0)
			for _, step := range append(steps, edit("main", "after", "a b c")) {
				step(t, h)
			}
			if got, want := h.blame(t, "main"), "block:a after:b block:c"; got != want {
				t.Errorf("blame %q, want %q", got, want)
			}
		})
	}
}

// TestBlameOfRandomMerges: in any history, an edit keeps the commits of the lines that were in force at its
// parent, and owns all others. The lines of blame are those of the prompt.
func TestBlameOfRandomMerges(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := newEditHistory(t, time.Second)
		lines := func() string {
			list := make([]string, 3)
			for i := range list {
				list[i] = string("abc"[i]) + strings.Repeat("'", random.IntN(3))
			}
			return strings.Join(list, " ")
		}
		branches := []string{"main", "side", "inner"}
		for n := range 16 {
			on := branches[random.IntN(3)]
			switch random.IntN(4) {
			case 0:
				extend(on)(t, h)
			case 1:
				mergeWith(on, branches[random.IntN(3)], []string{"ours", "theirs", lines()}[random.IntN(3)], random.IntN(2) == 0)(t, h)
			default:
				before, text := h.blame(t, on), lines()
				author := fmt.Sprint("edit", n)
				edit(on, author, text)(t, h)
				var want []string
				for line := range strings.FieldsSeq(text) {
					owner := author
					for old := range strings.FieldsSeq(before) {
						if by, had, _ := strings.Cut(old, ":"); had == line {
							owner = by
						}
					}
					want = append(want, owner+":"+line)
				}
				if got, want := h.blame(t, on), strings.Join(want, " "); got != want {
					t.Fatalf("seed %d, %s: blame %q after %q, want %q", seed, author, got, before, want)
				}
			}
			var got []string
			for l := range strings.FieldsSeq(h.blame(t, on)) {
				_, text, _ := strings.Cut(l, ":")
				got = append(got, text)
			}
			sent := must(h.repo.Compile(t.Context(), on, tract.CompileOptions{}))(t).Messages[0].Blocks[0].String()
			if strings.Join(got, "\n") != sent {
				t.Fatalf("seed %d, step %d: blame has %q, the prompt %q", seed, n, got, sent)
			}
		}
	}
}

// TestBlameOfASquash: a squash of blocks that the other branch has written and edited names who wrote each line, and
// the copy of what a model wrote has the text of the model.
func TestBlameOfASquash(t *testing.T) {
	repo := open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	must(main.AppendUser(t.Context(), "first"))(t)
	must(main.Fork(t.Context(), "side", "main"))(t)
	must(main.AppendUser(t.Context(), "ours"))(t)
	block := must(onlyID(side.Append(t.Context(), []content.Block{user("a\nb\nc")}, tract.AppendOptions{Author: "writer"})))(t)
	must(side.Ask(t.Context(), speaking{model: says(assistant("one\ntwo"))}, "go on", tract.AskOptions{}))(t)
	must(side.Edit(t.Context(), block.String(), "a\nB\nc", tract.EditOptions{Author: "editor"}))(t)
	must(side.Edit(t.Context(), ":/two", "one\nTWO", tract.EditOptions{Author: "editor"}))(t)
	must(main.Merge(t.Context(), "side", tract.MergeOptions{Squash: true, Author: "merge"}))(t)
	var got []string
	for _, l := range blame(t, repo) {
		switch by := l.Commit; {
		case by.Author != "writer" && by.Author != "editor" && l.Kind != content.KindAssistant:
		case by.Op == commit.Append && by.Origin != nil && by.Origin.Source == commit.SourceModel:
			got = append(got, "model:"+l.Text)
		default:
			got = append(got, by.Author+":"+l.Text)
		}
	}
	if got, want := strings.Join(got, " "), "writer:a editor:B writer:c model:one editor:TWO"; got != want {
		t.Errorf("blame %q, want %q", got, want)
	}
}
