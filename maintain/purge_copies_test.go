package maintain_test

import (
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// TestPurgeRemovesTranscriptsOfSummaries checks that purged content is also removed from the
// transcript that a model received to write a summary. The transcript is on no branch.
func TestPurgeRemovesTranscriptsOfSummaries(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	secret := must(main.Append(ctx, []content.Block{content.User("my password is hunter2\n")}, tract.AppendOptions{}))(t)[0]
	must(main.Append(ctx, []content.Block{content.Assistant("noted"), content.Reasoning{Text: "hunter3 is better"}, content.Assistant("yes")}, tract.AppendOptions{}))(t)
	must(main.Append(ctx, []content.Block{content.User("next")}, tract.AppendOptions{}))(t)
	must(summaryID(main.Compress(ctx, "main~1", tract.CompressOptions{Client: says(content.Assistant("They spoke of passwords."))})))(t)
	before := sent(t, repo, "main")
	got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{secret.String()}}))(t)
	if len(got.Copies) != 1 || len(got.Commits) != 1 || got.Objects != 2 {
		t.Errorf("%+v", got)
	}
	wantNoWord(t, dir, 2, "hunter2")
	if after := sent(t, repo, "main"); after != before {
		t.Errorf("the prompt is %q, and was %q", after, before)
	}
	for x, err := range inspect.Verify(ctx, repo, noTargets, inspect.VerifyOptions{}) {
		if err != nil || x.Outcome != inspect.Purged {
			t.Errorf("verify of the request for the summary: %+v, %v", x, err)
		}
	}
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Reasoning: true}))(t)
	wantNoWord(t, dir, 3, "hunter2", "hunter3")
}

// TestPurgeFindsCopiesBySource: a transcript is found by the commits that its manifest
// names, whatever it looks like, and none that only has the same text.
func TestPurgeFindsCopiesBySource(t *testing.T) {
	call := content.ToolCall{CallID: "c1", Name: "login", Arguments: `{"password":"hunter2"}`}
	cases := map[string]struct {
		blocks []content.Block
		edit   string // of the first of them
	}{
		"a tool call":                 {blocks: []content.Block{call, content.ToolResult{CallID: "c1", Text: "ok"}}},
		"a tool result made of parts": {blocks: []content.Block{content.ToolResult{CallID: "c0", Parts: []byte(`[{"type":"text","text":"hunter2"}]`)}}},
		"trailing newlines":           {blocks: []content.Block{content.User("hunter2\r\n\n \n\n")}},
		"an edit":                     {blocks: []content.Block{content.User("my password")}, edit: "hunter2"},
		"a transcript with a mask":    {blocks: []content.Block{content.User("hunter2, and the token is " + secretstest.Plant(23)[15].Secret)}},
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			repo, dir := onDisk(t)
			ctx := t.Context()
			main := repo.Branch("main")
			blocks := []content.Block{content.User("begin")}
			if _, ok := x.blocks[0].(content.ToolResult); ok {
				blocks = append(blocks, content.ToolCall{CallID: "c0", Name: "read", Arguments: "{}"})
			}
			must(main.Append(ctx, blocks, tract.AppendOptions{}))(t)
			secret := must(main.Append(ctx, x.blocks, tract.AppendOptions{}))(t)[0]
			if x.edit != "" {
				secret = must(main.Edit(ctx, secret.String(), x.edit, tract.EditOptions{}))(t)
			}
			must(main.Append(ctx, []content.Block{content.Assistant("noted")}, tract.AppendOptions{}))(t)
			must(main.AppendUser(ctx, "next"))(t)
			must(summaryID(main.Compress(ctx, "main~1", tract.CompressOptions{Client: says(content.Assistant("They spoke of passwords.")), Ask: tract.AskOptions{Settings: map[string]string{"secrets.mask": "all"}}})))(t)
			got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{secret.String()}}))(t)
			if len(got.Copies) != 1 || got.Objects != 2 {
				t.Errorf("%+v", got)
			}
			wantNoWord(t, dir, 2, "hunter2")
		})
	}
}

// TestPurgeLeavesUnrelatedCopies: the transcript of another block with the same text, and
// that of a block whose edit is purged, stay.
func TestPurgeLeavesUnrelatedCopies(t *testing.T) {
	repo, _ := onDisk(t)
	ctx := t.Context()
	summarized := func(branch string, blocks ...content.Block) objects.ID {
		b := repo.Branch(branch)
		first := must(b.Append(ctx, blocks, tract.AppendOptions{}))(t)[0]
		must(b.AppendUser(ctx, "next"))(t)
		must(summaryID(b.Compress(ctx, branch+"~1", tract.CompressOptions{Client: says(content.Assistant("A summary."))})))(t)
		return first
	}
	secret := summarized("main", content.User("hunter2"), content.Assistant("noted"))
	summarized("same-text", content.User("q"), content.Assistant("hunter2"))
	summarized("quoted", content.User("they said\nhunter2\nto me"), content.Assistant("noted"))
	other := summarized("edited", content.User("the first text"), content.Assistant("noted"))
	edit := must(repo.Branch("edited").Edit(ctx, other.String(), "hunter2!", tract.EditOptions{}))(t)
	got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{secret.String(), edit.String()}}))(t)
	if len(got.Commits) != 2 || len(got.Copies) != 1 || got.Objects != 3 {
		t.Errorf("%+v", got)
	}
}

// TestPurgeReachesReasoningOfTheRefLog: what a branch once was stays in the store, and
// its reasoning is as old as other reasoning.
func TestPurgeReachesReasoningOfTheRefLog(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	must(main.Append(ctx, []content.Block{content.User("q")}, tract.AppendOptions{}))(t)
	must(main.Append(ctx, []content.Block{content.Reasoning{Text: "hunter2"}, content.Assistant("a")}, tract.AppendOptions{}))(t)
	if err := main.Reset(ctx, "main~2"); err != nil {
		t.Fatal(err)
	}
	if got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Reasoning: true}))(t); len(got.Commits) != 1 {
		t.Errorf("%+v", got)
	}
	wantNoWord(t, dir, 1, "hunter2")
}

// TestPurgeEmptiesTheCacheOfAnotherHandle: prompts are remembered, and words that somebody
// else takes away are not sent from memory.
func TestPurgeEmptiesTheCacheOfAnotherHandle(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	secret := must(main.Append(ctx, []content.Block{content.User("hunter2")}, tract.AppendOptions{}))(t)[0]
	must(main.Append(ctx, []content.Block{content.Assistant("noted"), content.User("next")}, tract.AppendOptions{}))(t)
	other := must(tract.Open(ctx, dir, tract.OpenOptions{}))(t)
	t.Cleanup(func() { _ = other.Close() })
	for range 2 {
		if got := sent(t, other, "main"); got != "user:hunter2 | assistant:noted | user:next" {
			t.Fatal(got)
		}
	}
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{secret.String()}}))(t)
	for _, handle := range []*tract.Repo{other, repo} {
		if got := sent(t, handle, "main"); got != "assistant:noted | user:next" {
			t.Error(got)
		}
	}
}

// TestPurgeOfOtherObjects takes the description of a branch away, and a
// content by its own id.
func TestPurgeOfOtherObjects(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	id := must(main.Append(ctx, []content.Block{content.ToolCall{CallID: "c1", Name: "f", Arguments: "hunter2"}}, tract.AppendOptions{}))(t)[0]
	if err := main.Describe(ctx, "about hunter3"); err != nil {
		t.Fatal(err)
	}
	described := must(objects.ReadRef(ctx, repo.Store(), refs.Describe+"main"))(t)
	c := must(repo.Show(ctx, id.String()))(t)
	p := maintain.PurgeOptions{Revs: []string{described.Target.String(), c.ContentID.String()}, DryRun: true}
	if got := must(maintain.Purge(ctx, repo, p))(t); len(got.Commits) != 1 || got.Commits[0].ID != id || len(got.Others) != 1 || got.Objects != 0 {
		t.Errorf("dry: %+v", got)
	}
	p.DryRun = false
	must(maintain.Purge(ctx, repo, p))(t)
	wantNoWord(t, dir, 2, "hunter2", "hunter3")
	if text := description(t, repo, "main"); text != "" {
		t.Errorf("the description is %q", text)
	}
	if left, ok := must(repo.Show(ctx, id.String()))(t).Block.(content.ToolCall); !ok || left.CallID != "c1" {
		t.Errorf("of the call is left %+v", left)
	}
	call := must(repo.Show(ctx, id.String()))(t)
	if _, err := maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{call.OriginID.String()}}); err == nil {
		t.Error("an origin was purged")
	}
}
