package inspect_test

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
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

// TestBlameOfNestedMerges has three branches each change one line of a block; one branch is merged into
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
