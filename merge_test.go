package tract_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// parted is a store with a question on main, and main and try parted after it.
func parted(t *testing.T, ours, theirs []content.Block) (repo *tract.Repo, main, try *tract.Branch) {
	t.Helper()
	repo = open(t)
	main = repo.Branch("main")
	must(main.AppendUser(t.Context(), "Where to?"))(t)
	try = must(main.Fork(t.Context(), "try", "HEAD"))(t)
	must(main.Append(t.Context(), ours, tract.AppendOptions{}))(t)
	must(try.Append(t.Context(), theirs, tract.AppendOptions{}))(t)
	return repo, main, try
}

func said(words ...string) (blocks []content.Block) {
	for i, w := range words {
		block := content.Block(content.Assistant(w))
		if i%2 == 1 {
			block = content.User(w)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

func TestMergePutsTheirBlocksAfterOurs(t *testing.T) {
	repo, main, _ := parted(t, said("Oslo."), said("Bergen.", "When?", "May."))
	r := must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	must(main.AppendUser(t.Context(), "Go on."))(t)
	want := "user:Where to? | assistant:Oslo. | assistant:Bergen. | user:When? | assistant:May. | user:Go on."
	if got := sent(t, repo, "main"); got != want || r.Kind != tract.Merged || len(r.Incoming) != 3 {
		t.Errorf("%s merge gives\n%s\nwant\n%s", r.Kind, got, want)
	}
	if got := sent(t, repo, r.Ours.String()); got != "user:Where to? | assistant:Oslo." {
		t.Errorf("the old tip compiles to %s", got)
	}
	second := must(repo.Resolve(t.Context(), "main~1^2"))(t)
	if second != r.Theirs {
		t.Errorf("main~1^2 is %s, want %s", second.Short(), r.Theirs.Short())
	}
}

func TestMergedBlocksBeginAMessage(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.AppendUser(t.Context(), "Think."))(t)
	ids := must(main.Append(t.Context(), []content.Block{content.Reasoning{Text: "Hm."}, content.Assistant("One.")}, tract.AppendOptions{}))(t)
	try := must(main.Fork(t.Context(), "try", ids[0].String()))(t)
	must(try.Append(t.Context(), []content.Block{content.Assistant("Two.")}, tract.AppendOptions{}))(t)
	must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)
	if len(p.Messages) != 3 {
		t.Errorf("%d messages, want the answers of two branches apart: %v", len(p.Messages), p.Messages)
	}
}

// TestMergeKeepsEditsThatBothSidesHave merges histories in both directions: the order of the merged
// history alone would give a text that neither side has.
func TestMergeKeepsEditsThatBothSidesHave(t *testing.T) {
	repo, main, try := parted(t, said("Oslo."), said("Bergen."))
	must(main.Edit(t.Context(), ":/Where", "Ours?", tract.EditOptions{}))(t)
	must(try.Edit(t.Context(), ":/Where", "Theirs?", tract.EditOptions{}))(t)
	ours := func(c tract.Conflict) (*tract.Change, error) { return &c.Ours, nil }
	theirs := func(c tract.Conflict) (*tract.Change, error) { return &c.Theirs, nil }
	must(main.Fork(t.Context(), "other", "HEAD"))(t)
	must(try.Merge(t.Context(), "other", tract.MergeOptions{Resolve: theirs}))(t)
	must(main.Merge(t.Context(), "try~1", tract.MergeOptions{Resolve: ours}))(t)
	for _, name := range []string{"main", "try"} {
		if got := sent(t, repo, name); !strings.Contains(got, "Ours?") {
			t.Fatalf("%s says %s", name, got)
		}
	}
	r := must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	if got := sent(t, repo, "main"); !strings.Contains(got, "Ours?") || strings.Contains(got, "Theirs?") || len(r.Conflicts) > 0 {
		t.Errorf("both say Ours?, and the merge says %s", got)
	}
}

func TestConflictsAreListedAndNothingIsCommitted(t *testing.T) {
	repo, main, try := parted(t, said("Oslo."), said("Bergen."))
	must(main.Annotate(t.Context(), ":/Where", priority.Pinned, "keep"))(t)
	must(try.Annotate(t.Context(), ":/Where", priority.Skip, "drop"))(t)
	tip := must(main.Tip(t.Context()))(t)
	_, err := main.Merge(t.Context(), "try", tract.MergeOptions{})
	var conflicts *tract.MergeConflictError
	ok := errors.As(err, &conflicts)
	if !ok || len(conflicts.Conflicts) != 1 {
		t.Fatalf("%v, want one conflict", err)
	}
	c := conflicts.Conflicts[0]
	if c.Op != commit.Annotate || c.Ours.Priority != priority.Pinned || c.Theirs.Priority != priority.Skip || c.Theirs.Text != "drop" {
		t.Errorf("the conflict is %+v", c)
	}
	if got := must(main.Tip(t.Context()))(t); got != tip {
		t.Errorf("main has moved to %s", got.Short())
	}
	if r := must(main.Merge(t.Context(), "try", tract.MergeOptions{NoMove: true, Resolve: func(tract.Conflict) (*tract.Change, error) {
		return &tract.Change{Priority: priority.Normal, Text: "both"}, nil
	}}))(t); sent(t, repo, r.Tip.String()) != "user:Where to? | assistant:Oslo. | assistant:Bergen." || must(main.Tip(t.Context()))(t) != tip {
		t.Errorf("what was decided compiles to %s", sent(t, repo, r.Tip.String()))
	}
}

// TestMergedSummaryCoversOnlyItsBranch merges a summary into a history in which other commits lie
// within the range of the summary.
func TestMergedSummaryCoversOnlyItsBranch(t *testing.T) {
	repo, main, try := parted(t, said("Oslo.", "When?", "May."), said("Bergen.", "How?", "By train."))
	must(summaryID(try.Compress(t.Context(), "try~3..try~1", tract.CompressOptions{Text: "They talked."})))(t)
	must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	got := sent(t, repo, "main")
	for _, word := range []string{"Oslo", "When?", "May", "They talked", "By train"} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is missing: %s", word, got)
		}
	}
	if strings.Contains(got, "Bergen") || strings.Contains(got, "How?") {
		t.Errorf("what the summary stands for is sent: %s", got)
	}
	// The first of its range is in the middle of the other line.
	must(summaryID(try.Compress(t.Context(), "try~4", tract.CompressOptions{Text: "All of it."})))(t)
	must(main.AppendUser(t.Context(), "And?"))(t)
	must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	if got := sent(t, repo, "main"); !strings.Contains(got, "Oslo") || !strings.Contains(got, "May") || !strings.Contains(got, "All of it") {
		t.Errorf("a summary of the other line hides what it never saw: %s", got)
	}
}

func TestFollowYieldsMergedCommits(t *testing.T) {
	repo, main, _ := parted(t, said("Oslo."), said("Bergen."))
	before := must(main.Tip(t.Context()))(t)
	must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	for change, err := range main.Follow(t.Context(), before) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Type != "append" || len(change.Added) != 2 || change.Added[1] != change.New {
			t.Errorf("the change is %+v", change)
		}
		break
	}
	with := must(inspect.Containing(t.Context(), repo, "try"))(t)
	if len(with) != 2 {
		t.Errorf("%v have the tip of try", with)
	}
}

func TestCherryPickOfACallBringsItsResult(t *testing.T) {
	repo, main, try := parted(t, said("Oslo."), []content.Block{think("first"), call("call_a"), think("second"), call("call_b"), result("call_a"), result("call_b"), content.Assistant("Done.")})
	ids := must(main.CherryPick(t.Context(), []string{"call_b"}))(t)
	if got := kinds(t, repo, "main"); got != "user assistant reasoning reasoning tool-call tool-result" || len(ids) != 4 {
		t.Errorf("main is %s", got)
	}
	if problems, err := repo.Check(t.Context(), "main", plainTarget{wantsTurn: true}, tract.RequestOptions{}); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	must(try.Append(t.Context(), []content.Block{call("call_c")}, tract.AppendOptions{}))(t)
	if _, err := main.CherryPick(t.Context(), []string{"call_c"}); !errors.As(err, new(*tract.ToolLoopError)) {
		t.Errorf("a call without a result is picked: %v", err)
	}
	if _, err := main.Merge(t.Context(), "try", tract.MergeOptions{}); !errors.As(err, new(*tract.ToolLoopError)) {
		t.Errorf("an open loop is merged: %v", err)
	}
}

func TestLogAllShowsSharedCommitsOnce(t *testing.T) {
	repo, main, _ := parted(t, said("Oslo."), said("Bergen."))
	must(main.Merge(t.Context(), "try", tract.MergeOptions{}))(t)
	var tips []objects.ID
	for _, rev := range []string{"try", "main", "main~1", "try"} {
		tips = append(tips, must(repo.Resolve(t.Context(), rev))(t))
	}
	var seen []objects.ID
	for c, err := range repo.Log(t.Context(), "", tract.LogOptions{Tips: tips}) {
		if err != nil || slices.Contains(seen, c.ID) {
			t.Fatalf("%v, or %v twice", err, c)
		}
		seen = append(seen, c.ID)
	}
	if len(seen) != 4 {
		t.Errorf("%d commits, want 4", len(seen))
	}
}
