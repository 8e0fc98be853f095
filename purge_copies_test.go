package tract_test

import (
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// TestWhatASummaryWasMadeOfGoesToo: a model that writes a summary is shown a copy of
// what it stands for, on no branch. Words that are taken away do not stay there.
func TestWhatASummaryWasMadeOfGoesToo(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	secret := must(main.Append(ctx, []content.Block{content.User("my password is hunter2\n")}))(t)[0]
	must(main.Append(ctx, []content.Block{content.Assistant("noted"), content.Reasoning{Text: "hunter3 is better"}, content.Assistant("yes")}))(t)
	must(main.Append(ctx, []content.Block{content.User("next")}))(t)
	must(main.Summarize(ctx, says(content.Assistant("They spoke of passwords.")), "main~1"))(t)
	before := sent(t, repo, "main")
	got := must(repo.Purge(ctx, tract.Purging{Revs: []string{secret.String()}}))(t)
	if len(got.Copies) != 1 || len(got.Commits) != 1 || got.Objects != 2 {
		t.Errorf("%+v", got)
	}
	wantNoWord(t, dir, 2, "hunter2")
	if after := sent(t, repo, "main"); after != before {
		t.Errorf("the prompt is %q, and was %q", after, before)
	}
	for x, err := range repo.Verify(ctx, noTargets, nil) {
		if err != nil || x.Verdict != tract.Pruned {
			t.Errorf("verify of the request for the summary: %+v, %v", x, err)
		}
	}
	must(repo.Purge(ctx, tract.Purging{Reasoning: true}))(t)
	wantNoWord(t, dir, 3, "hunter2", "hunter3")
}

// TestPurgeReachesReasoningOfTheRefLog: what a branch once was stays in the store, and
// its reasoning is as old as other reasoning.
func TestPurgeReachesReasoningOfTheRefLog(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	must(main.Append(ctx, []content.Block{content.User("q")}))(t)
	must(main.Append(ctx, []content.Block{content.Reasoning{Text: "hunter2"}, content.Assistant("a")}))(t)
	if err := main.Reset(ctx, "main~2"); err != nil {
		t.Fatal(err)
	}
	if got := must(repo.Purge(ctx, tract.Purging{Reasoning: true}))(t); len(got.Commits) != 1 {
		t.Errorf("%+v", got)
	}
	wantNoWord(t, dir, 1, "hunter2")
}

// TestAnotherHandleForgetsWhatItCompiled: prompts are remembered, and words that somebody
// else takes away are not sent from memory.
func TestAnotherHandleForgetsWhatItCompiled(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	secret := must(main.Append(ctx, []content.Block{content.User("hunter2")}))(t)[0]
	must(main.Append(ctx, []content.Block{content.Assistant("noted"), content.User("next")}))(t)
	other := must(tract.Open(ctx, dir))(t)
	t.Cleanup(func() { _ = other.Close() })
	for range 2 {
		if got := sent(t, other, "main"); got != "user:hunter2 | assistant:noted | user:next" {
			t.Fatal(got)
		}
	}
	must(repo.Purge(ctx, tract.Purging{Revs: []string{secret.String()}}))(t)
	for _, handle := range []*tract.Repo{other, repo} {
		if got := sent(t, handle, "main"); got != "assistant:noted | user:next" {
			t.Error(got)
		}
	}
}

// TestPurgeOfObjectsThatAreNoCommits takes the description of a branch away, and a
// content by its own id.
func TestPurgeOfObjectsThatAreNoCommits(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	id := must(main.Append(ctx, []content.Block{content.ToolCall{CallID: "c1", Name: "f", Arguments: "hunter2"}}))(t)[0]
	if err := main.Describe(ctx, "about hunter3"); err != nil {
		t.Fatal(err)
	}
	described := must(objects.ReadRef(ctx, repo.Store(), refs.Describe+"main"))(t)
	c := must(repo.Show(ctx, id.String()))(t)
	p := tract.Purging{Revs: []string{described.Target.String(), c.Content.String()}, DryRun: true}
	if got := must(repo.Purge(ctx, p))(t); len(got.Commits) != 1 || got.Commits[0].ID != id || len(got.Others) != 1 || got.Objects != 0 {
		t.Errorf("dry: %+v", got)
	}
	p.DryRun = false
	must(repo.Purge(ctx, p))(t)
	wantNoWord(t, dir, 2, "hunter2", "hunter3")
	if text := must(main.Description(ctx))(t); text != "" {
		t.Errorf("the description is %q", text)
	}
	if left, ok := must(repo.Show(ctx, id.String()))(t).Block.(content.ToolCall); !ok || left.CallID != "c1" {
		t.Errorf("of the call is left %+v", left)
	}
	call := must(repo.Show(ctx, id.String()))(t)
	if _, err := repo.Purge(ctx, tract.Purging{Revs: []string{call.Origin.String()}}); err == nil {
		t.Error("an origin was purged")
	}
}
