package tract_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func TestBlocksOfOneMessageBelongTogether(t *testing.T) {
	image := content.Media{Of: content.KindImage, MediaType: "image/png", Data: "png"}
	for name, c := range map[string]struct {
		appends [][]content.Block
		want    string // the index of each block
	}{
		"one call, one role":              {[][]content.Block{{content.User("look"), image}}, "0 1"},
		"one call, two roles":             {[][]content.Block{{content.User("q"), content.Assistant("a")}}, "0 0"},
		"two questions":                   {[][]content.Block{{content.User("a")}, {content.User("b")}}, "0 0"},
		"two answers":                     {[][]content.Block{{content.Assistant("a")}, {content.Assistant("b")}}, "0 0"},
		"a thought and its answer":        {[][]content.Block{{think("a")}, {content.Assistant("b")}}, "0 1"},
		"a thought, an answer and a call": {[][]content.Block{{think("a")}, {content.Assistant("b")}, {call("1")}}, "0 1 2"},
		"an answer and a thought":         {[][]content.Block{{content.Assistant("a")}, {think("b")}}, "0 0"},
		"results":                         {[][]content.Block{{call("1"), call("2")}, {result("1")}, {result("2")}}, "0 1 0 1"},
		"two rules":                       {[][]content.Block{{content.System("a"), content.System("b")}}, "0 0"},
	} {
		repo := open(t)
		for _, blocks := range c.appends {
			must(repo.Branch("main").Append(t.Context(), blocks, tract.AppendOptions{}))(t)
		}
		var got []string
		for c, err := range repo.Log(t.Context(), "main", tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append([]string{fmt.Sprint(c.Index)}, got...)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	repo := open(t)
	main := repo.Branch("main")
	must(main.Ask(t.Context(), says(think("hm")), "Q", tract.AskOptions{}))(t)
	if id := must(onlyID(main.Append(t.Context(), []content.Block{content.Assistant("by hand")}, tract.AppendOptions{})))(t); must(repo.Show(t.Context(), id.String()))(t).Index != 0 {
		t.Error("a block by hand became part of a model's message")
	}
}

func TestEmptyBlocksAreRefused(t *testing.T) {
	main := open(t).Branch("main")
	for _, b := range []content.Block{content.User(""), content.System(""), content.Reasoning{}} {
		if _, err := main.Append(t.Context(), []content.Block{b}, tract.AppendOptions{}); !errors.Is(err, tract.ErrEmpty) {
			t.Errorf("%s: %v", b.Kind(), err)
		}
	}
	must(main.Append(t.Context(), []content.Block{content.ToolCall{CallID: "1", Name: "t"}, content.ToolResult{CallID: "1"}}, tract.AppendOptions{}))(t)
	if ids := must(main.Append(t.Context(), nil, tract.AppendOptions{}))(t); ids != nil {
		t.Errorf("no blocks made %v", ids)
	}
}

func TestFieldsOfACommit(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	repo := open(t, tract.OpenOptions{Author: "ada", Now: func() time.Time { return noon }})
	main := repo.Branch("main")
	id := must(onlyID(main.Append(t.Context(), []content.Block{content.User("hi")}, tract.AppendOptions{Label: "greeting", Priority: priority.Pinned, Meta: map[string]string{"ticket": "42"}})))(t)
	c := must(repo.Show(t.Context(), id.String()))(t)
	if c.Author != "ada" || !c.Time.Equal(noon) || c.Label.Text != "greeting" || c.Label.Meta["ticket"] != "42" || c.Priority != priority.Pinned || c.Origin.Session != "main" {
		t.Errorf("%+v %+v", c, c.Origin)
	}
	id = must(onlyID(main.Append(tract.AsOperation(t.Context(), "user"), []content.Block{content.User("hi")}, tract.AppendOptions{Author: "bob", Time: noon.Add(time.Hour)})))(t)
	c = must(repo.Show(t.Context(), id.String()))(t)
	moves := must(repo.Store().Log(t.Context(), "refs/heads/main", 0, 1))(t)
	if c.Author != "bob" || !c.Time.Equal(noon.Add(time.Hour)) || moves[0].Note.Command != "user" || moves[0].Note.Author != "bob" {
		t.Errorf("%+v, %+v", c, moves)
	}
}

func TestAppendWithAKeyIsIdempotent(t *testing.T) {
	main := open(t).Branch("main")
	blocks := []content.Block{content.User("a"), content.Assistant("b")}
	first := must(main.Append(t.Context(), blocks, tract.AppendOptions{Key: "k"}))(t)
	must(main.AppendUser(t.Context(), "between"))(t)
	if again := must(main.Append(t.Context(), blocks, tract.AppendOptions{Key: "k"}))(t); !slices.Equal(first, again) {
		t.Errorf("%v, again %v", first, again)
	}
	for range 1000 {
		must(main.AppendUser(t.Context(), "x"))(t)
	}
	if late := must(main.Append(t.Context(), blocks, tract.AppendOptions{Key: "k"}))(t); slices.Equal(first, late) {
		t.Error("a key is remembered for longer than 1,000 commits")
	}
}

func TestForkResetDelete(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	first := must(main.AppendUser(t.Context(), "a"))(t)
	second := must(main.AppendUser(t.Context(), "b"))(t)
	side := must(main.Fork(t.Context(), "side", "HEAD~1"))(t)
	if tip := must(side.Tip(t.Context()))(t); tip != first || side.Name() != "side" {
		t.Errorf("the fork is at %v", tip)
	}
	if _, err := main.Fork(t.Context(), "side", "HEAD"); !errors.Is(err, objects.ErrExists) {
		t.Errorf("a fork onto a branch that is there: %v", err)
	}
	if _, err := main.Fork(t.Context(), "a..b", "HEAD"); err == nil {
		t.Error("a fork with a bad name")
	}
	if err := main.Reset(t.Context(), "HEAD~1"); err != nil || must(main.Tip(t.Context()))(t) != first {
		t.Errorf("reset: %v", err)
	}
	if err := main.Reset(t.Context(), second.String()); err != nil || must(main.Tip(t.Context()))(t) != second {
		t.Errorf("reset forward: %v", err)
	}
	if err := repo.DeleteRefs(t.Context(), []string{"refs/heads/side"}); err != nil || !must(side.Tip(t.Context()))(t).IsZero() {
		t.Errorf("delete: %v", err)
	}
	if err := repo.DeleteRefs(t.Context(), []string{"refs/heads/side"}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
	if _, err := repo.Branch("-x").AppendUser(t.Context(), "a"); err == nil {
		t.Error("a branch with a bad name")
	}
}

func TestUndoTakesBackOneOperationAfterTheOther(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	var tips []objects.ID
	for _, step := range []func(){
		func() { must(main.AppendUser(t.Context(), "a"))(t) },
		func() {
			must(main.Ask(t.Context(), says(think("hm"), content.Assistant("x")), "b", tract.AskOptions{}))(t)
		},
		func() { must(main.Annotate(t.Context(), "HEAD", priority.Skip, ""))(t) },
		func() { must(main.Edit(t.Context(), "HEAD~3", "B", tract.EditOptions{}))(t) },
	} {
		tips = append(tips, must(main.Tip(t.Context()))(t))
		step()
	}
	undone := func() string { return must(repo.Undo(t.Context(), tract.UndoOptions{}))(t).Note.Command }
	for i, want := range []string{"edit", "annotate", "ask", "append"} {
		if got := undone(); got != want {
			t.Errorf("undo %d took back %q, want %q", i, got, want)
		}
		if must(main.Tip(t.Context()))(t) != tips[len(tips)-1-i] {
			t.Errorf("undo %d left another tip", i)
		}
	}
	if _, err := repo.Undo(t.Context(), tract.UndoOptions{}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("undo of nothing: %v", err)
	}
	if tip := must(main.Tip(t.Context()))(t); !tip.IsZero() {
		t.Error("the branch is still there")
	}
	for range tips {
		must(repo.Redo(t.Context(), tract.UndoOptions{}))(t)
	}
	var log []string
	for op, err := range repo.Operations(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if op.Of == 0 {
			log = append(log, fmt.Sprint(op.Seq, op.Parts, op.Note.Command, op.Undone))
		}
	}
	if got := strings.Join(log, " "); got != "5 []editfalse 4 []annotatefalse 3 [2]askfalse 1 []appendfalse" {
		t.Errorf("the operations are %s", got)
	}

	before := refsOf(t, repo)
	must(main.Rename(t.Context(), "other"))(t) // moves several refs
	after := refsOf(t, repo)
	must(repo.Undo(t.Context(), tract.UndoOptions{}))(t)
	if got := refsOf(t, repo); got != before {
		t.Errorf("undo of a rename gives\n%swant\n%s", got, before)
	}
	must(repo.Redo(t.Context(), tract.UndoOptions{}))(t)
	if got := refsOf(t, repo); got != after {
		t.Errorf("redo of a rename gives\n%swant\n%s", got, after)
	}
}

// TestOperationsOfSeveralCommandsAtOnce has two commands whose moves lie between one
// another in the log.
func TestOperationsOfSeveralCommandsAtOnce(t *testing.T) {
	repo := open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	one, two := tract.AsOperation(t.Context(), ""), tract.AsOperation(t.Context(), "other")
	must(main.AppendUser(one, "one"))(t)
	must(side.AppendUser(two, "two"))(t)
	must(main.AppendUser(one, "three"))(t)
	must(side.AppendUser(two, "four"))(t)
	must(main.AppendUser(one, "five"))(t)
	tip := must(main.Tip(t.Context()))(t)
	first := must(repo.Undo(t.Context(), tract.UndoOptions{}))(t)
	if first.Seq != 5 || !slices.Equal(first.Parts, []uint64{3, 1}) || !must(main.Tip(t.Context()))(t).IsZero() || must(side.Tip(t.Context()))(t).IsZero() {
		t.Errorf("undo took back %+v", first)
	}
	if second := must(repo.Undo(t.Context(), tract.UndoOptions{}))(t); second.Seq != 4 || second.Note.Command != "other" || !must(side.Tip(t.Context()))(t).IsZero() {
		t.Errorf("the second undo took back %+v", second)
	}
	must(repo.Redo(t.Context(), tract.UndoOptions{}))(t)
	must(repo.Redo(t.Context(), tract.UndoOptions{}))(t)
	if must(main.Tip(t.Context()))(t) != tip {
		t.Error("redo leads elsewhere")
	}
}

// TestUndoIsOfABranch takes back what moved a branch, whatever others did since, and one
// operation by its number.
func TestUndoIsOfABranch(t *testing.T) {
	ctx, repo := t.Context(), open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	first := must(main.AppendUser(ctx, "first"))(t)
	latest := must(main.AppendUser(ctx, "second"))(t)
	foreign := must(side.AppendUser(ctx, "foreign"))(t)
	ofMain := tract.UndoOptions{Branch: "main"}
	at := func(want objects.ID) {
		t.Helper()
		if got := must(main.Tip(ctx))(t); got != want || must(side.Tip(ctx))(t) != foreign {
			t.Errorf("main is at %s, want %s", got.Short(), want.Short())
		}
	}
	if op := must(repo.Undo(ctx, tract.UndoOptions{Branch: "main", DryRun: true}))(t); op.Seq != 2 {
		t.Errorf("it would take back %+v", op)
	}
	at(latest)
	must(repo.Undo(ctx, ofMain))(t)
	at(first)
	must(repo.Undo(ctx, ofMain))(t)
	at(objects.ID{})
	if _, err := repo.Undo(ctx, ofMain); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("a third undo: %v", err)
	}
	must(repo.Redo(ctx, ofMain))(t)
	at(first)
	must(repo.Undo(ctx, ofMain))(t) // what was done again
	at(objects.ID{})
	must(repo.Redo(ctx, ofMain))(t)
	must(repo.Redo(ctx, ofMain))(t)
	at(latest)
	for name, err := range map[string]error{
		"nothing to redo":  second(repo.Redo(ctx, ofMain)),
		"nothing of side":  second(repo.Redo(ctx, tract.UndoOptions{Branch: "side"})),
		"no such number":   second(repo.Undo(ctx, tract.UndoOptions{Operation: 99})),
		"no such number 2": second(repo.Redo(ctx, tract.UndoOptions{Operation: 99})),
	} {
		if !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(repo.Undo(ctx, tract.UndoOptions{Operation: 2}))(t)
	at(first)
	for o, want := range map[tract.UndoOptions]string{{Operation: 2}: "already undone", {Operation: 4}: "an undo or a redo"} {
		if _, err := repo.Undo(ctx, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("undo of %d: %v, want %q", o.Operation, err, want)
		}
	}
	if _, err := repo.Redo(ctx, tract.UndoOptions{Operation: 1}); err == nil || !strings.Contains(err.Error(), "is not undone") {
		t.Errorf("redo of what is not undone: %v", err)
	}
	must(repo.Redo(ctx, tract.UndoOptions{Operation: 2}))(t)
	at(latest)
}

// TestUndoRefusesWhatMovedSince: an operation that moved several refs is taken back whole
// or not at all, and the error names the ref and what moved it.
func TestUndoRefusesWhatMovedSince(t *testing.T) {
	ctx, repo := t.Context(), open(t)
	main, side := repo.Branch("main"), repo.Branch("side")
	one := tract.AsOperation(ctx, "")
	must(main.AppendUser(one, "one"))(t)
	must(side.AppendUser(one, "two"))(t)
	must(onlyID(side.Append(tract.AsOperation(ctx, "user"), []content.Block{content.User("of another process")}, tract.AppendOptions{Author: "eve"})))(t)
	before := refsOf(t, repo)
	for _, o := range []tract.UndoOptions{{Branch: "main"}, {Operation: 1}, {Operation: 2, DryRun: true}} {
		_, err := repo.Undo(ctx, o)
		var moved *tract.MovedError
		if !errors.As(err, &moved) || moved.Operation != 2 || moved.Ref != "refs/heads/side" || moved.By.Seq != 3 {
			t.Errorf("undo %+v: %v", o, err)
		} else if want := `undo: operation 2: side was moved since by operation 3, "user" of eve`; err.Error() != want {
			t.Errorf("%s, want %s", err, want)
		}
	}
	if refsOf(t, repo) != before {
		t.Error("a ref has moved")
	}
	must(repo.Undo(ctx, tract.UndoOptions{Branch: "side"}))(t)
	must(repo.Undo(ctx, tract.UndoOptions{Branch: "main"}))(t)
	must(main.AppendUser(ctx, "else"))(t)
	if _, err := repo.Redo(ctx, tract.UndoOptions{Operation: 2}); !errors.As(err, new(*tract.MovedError)) {
		t.Errorf("redo of what moved since: %v", err)
	}
}

// TestUndoRefusesWhatMovedBetween: what another operation did to a ref between two moves
// of one operation is not taken back with it.
func TestUndoRefusesWhatMovedBetween(t *testing.T) {
	ctx, repo := t.Context(), open(t)
	main := repo.Branch("main")
	one := tract.AsOperation(ctx, "")
	must(main.AppendUser(one, "question"))(t)
	must(main.AppendUser(ctx, "of another process"))(t)
	tip := must(main.AppendUser(one, "result"))(t)
	var moved *tract.MovedError
	if _, err := repo.Undo(ctx, tract.UndoOptions{Branch: "main"}); !errors.As(err, &moved) || moved.By.Seq != 2 {
		t.Errorf("undo: %v", err)
	}
	if must(main.Tip(ctx))(t) != tip {
		t.Error("the branch has moved")
	}
}

// TestUndoIgnoresTheNameOfACommand checks that undo does not derive anything from the name of a
// command, which may be any text.
func TestUndoIgnoresTheNameOfACommand(t *testing.T) {
	ctx, repo := t.Context(), open(t)
	main := repo.Branch("main")
	first := must(main.AppendUser(ctx, "first"))(t)
	must(main.AppendUser(tract.AsOperation(ctx, "undo 1"), "second"))(t)
	third := must(main.AppendUser(tract.AsOperation(ctx, "user (with 2)"), "third"))(t)
	for op, err := range repo.Operations(ctx) {
		if err != nil || op.Of != 0 || op.Undone || len(op.Parts) > 0 {
			t.Errorf("operation %+v, %v", op, err)
		}
	}
	must(repo.Undo(ctx, tract.UndoOptions{}))(t)
	must(repo.Undo(ctx, tract.UndoOptions{}))(t)
	if got := must(main.Tip(ctx))(t); got != first {
		t.Errorf("main is at %s", got.Short())
	}
	must(repo.Redo(ctx, tract.UndoOptions{}))(t)
	must(repo.Redo(ctx, tract.UndoOptions{}))(t)
	if got := must(main.Tip(ctx))(t); got != third {
		t.Errorf("main is at %s", got.Short())
	}
}

func TestAnnotateAndEditRequireABlockOfTheBranch(t *testing.T) {
	repo := open(t)
	main, other := repo.Branch("main"), repo.Branch("other")
	block := must(main.AppendUser(t.Context(), "first"))(t)
	foreign := must(other.AppendUser(t.Context(), "elsewhere"))(t)
	edit := must(main.Edit(t.Context(), block.String(), "second", tract.EditOptions{}))(t)
	must(main.Edit(t.Context(), edit.String(), "third", tract.EditOptions{}))(t)
	note := must(main.Annotate(t.Context(), edit.String(), priority.Pinned, "why"))(t)
	notes := must(inspect.Changes(t.Context(), repo, must(main.Tip(t.Context()))(t), block))(t)
	if len(notes) != 3 || notes[2].Block.String() != "why" || sent(t, repo, "main") != "user:third" {
		t.Errorf("notes %v, sent %s", notes, sent(t, repo, "main"))
	}
	if _, err := main.Annotate(t.Context(), note.String(), priority.Skip, ""); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("an annotation of an annotation: %v", err)
	}
	for name, err := range map[string]error{
		"annotate": second(main.Annotate(t.Context(), foreign.String(), priority.Skip, "")),
		"edit":     second(main.Edit(t.Context(), foreign.String(), "x", tract.EditOptions{})),
	} {
		if !errors.Is(err, objects.ErrNotFound) || !strings.Contains(err.Error(), "not on branch main") {
			t.Errorf("%s of a block elsewhere: %v", name, err)
		}
	}
	if _, err := main.Edit(t.Context(), "HEAD~9", "x", tract.EditOptions{}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := main.Edit(t.Context(), block.String(), "", tract.EditOptions{}); !errors.Is(err, tract.ErrEmpty) {
		t.Errorf("%v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFollowSeesEveryCommitOnce(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.AppendUser(t.Context(), "before"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := make(chan tract.BranchChange)
	go func() {
		defer close(changes)
		for c, err := range main.Follow(ctx, objects.ID{}) {
			if err != nil {
				return
			}
			changes <- c
		}
	}()
	if c := <-changes; c.Type != tract.Appended || len(c.Added) != 1 {
		t.Fatalf("at first: %+v", c)
	}
	var want, got []objects.ID
	for i := range 100 {
		want = append(want, must(main.AppendUser(t.Context(), fmt.Sprint(i)))(t))
	}
	for last := (tract.BranchChange{}); last.New != want[len(want)-1]; {
		last = <-changes
		got = append(got, last.Added...)
	}
	if !slices.Equal(got, want) {
		t.Fatal("commits were lost or out of order")
	}
	for c, err := range main.Follow(ctx, want[0]) { // from what was seen already
		if err != nil || !slices.Equal(c.Added, want[1:]) {
			t.Errorf("%d commits since the first, want %d: %v", len(c.Added), len(want)-1, err)
		}
		break
	}
	if err := main.Reset(t.Context(), "HEAD~1"); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.Type != tract.Moved || c.New != want[98] {
		t.Errorf("after a reset: %+v", c)
	}
	if err := repo.DeleteRefs(t.Context(), []string{"refs/heads/main"}); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.Type != tract.Deleted {
		t.Errorf("after a delete: %+v", c)
	}
	cancel()
	if _, more := <-changes; more {
		t.Error("it goes on after its context")
	}
}

// TestManyWriters: 1,000 goroutines on 1,000 branches and 64 on one. Nothing is
// lost and nobody sees a conflict.
func TestManyWriters(t *testing.T) {
	for name, url := range map[string]string{"memory": "mem:", "bolt": filepath.Join(t.TempDir(), "store")} {
		t.Run(name, func(t *testing.T) {
			repo, err := tract.Open(t.Context(), url, tract.OpenOptions{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = repo.Close() }()
			const lone, crowd, each = 1000, 64, 5
			var group sync.WaitGroup
			write := func(branch string, n int) {
				for i := range n {
					text := fmt.Sprintf("%s %d", branch, i)
					if _, err := repo.Branch(branch).Append(t.Context(), []content.Block{content.User(text), content.Assistant("ok")}, tract.AppendOptions{}); err != nil {
						t.Error(err)
					}
				}
			}
			for i := range lone {
				group.Go(func() { write(fmt.Sprintf("b%d", i), 1) })
			}
			for range crowd {
				group.Go(func() { write("crowd", each) })
			}
			group.Wait()
			branches := 0
			for _, err := range repo.Refs(t.Context(), tract.RefQuery{}) {
				if err != nil {
					t.Fatal(err)
				}
				branches++
			}
			if branches != lone+1 {
				t.Errorf("%d branches", branches)
			}
			if n := len(strings.Fields(kinds(t, repo, "crowd"))); n != crowd*each*2 {
				t.Errorf("%d commits on one branch, want %d", n, crowd*each*2)
			}
		})
	}
}

func TestOpenOfAMissingStoreAndUseAfterClose(t *testing.T) {
	if _, err := tract.Open(t.Context(), filepath.Join(t.TempDir(), "none"), tract.OpenOptions{}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("%v", err)
	}
	repo := open(t)
	_ = repo.Close()
	if _, err := repo.Branch("main").AppendUser(t.Context(), "x"); !errors.Is(err, objects.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := second(repo.Compile(t.Context(), "main", tract.CompileOptions{Settings: map[string]string{"reasoning.strip_from_context": "maybe"}})); err == nil || errors.Is(err, objects.ErrClosed) {
		t.Error("a setting with a bad value")
	}
}

// TestExistingBranchNameIsRefused: also when it is at the commit that it was asked for.
func TestExistingBranchNameIsRefused(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.AppendUser(t.Context(), "hi"))(t)
	must(main.Fork(t.Context(), "try", "main"))(t)
	if _, err := main.Fork(t.Context(), "try", "main"); !errors.Is(err, objects.ErrExists) {
		t.Errorf("fork: %v", err)
	}
	if _, err := main.Rename(t.Context(), "try"); !errors.Is(err, objects.ErrExists) {
		t.Errorf("rename: %v", err)
	}
	if err := repo.Tag(t.Context(), "v1", "main"); err != nil {
		t.Fatal(err)
	}
	if err := repo.Tag(t.Context(), "v1", "main"); !errors.Is(err, objects.ErrExists) {
		t.Errorf("tag: %v", err)
	}
}
