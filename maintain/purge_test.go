package maintain_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// onDisk is a repo in files, and the folder of them.
func onDisk(t *testing.T, o ...tract.OpenOptions) (*tract.Repo, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	options := opt(o)
	options.Create = true
	repo := must(tract.Open(t.Context(), dir, options))(t)
	t.Cleanup(func() { _ = repo.Close() })
	return repo, dir
}

// wantNoWord wants that words are in no file, and that the store is sound.
func wantNoWord(t *testing.T, dir string, purged int, words ...string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if bytes.Contains(b, []byte(w)) {
				t.Errorf("%q is in %s", w, filepath.Base(name))
			}
		}
	}
	h := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t)
	if !h.OK() || len(h.Damages) > 0 || h.Purged != purged {
		t.Errorf("fsck: %+v, want %d purged", h, purged)
	}
}

// TestPurgedReasoningIsInNoFile purges the reasoning that may go, and looks at everything
// that shows reasoning.
func TestPurgedReasoningIsInNoFile(t *testing.T) {
	now := time.Now()
	repo, dir := onDisk(t, tract.OpenOptions{Now: func() time.Time { return now }})
	ctx := t.Context()
	old, young := now.Add(-30*24*time.Hour), now
	ask := func(branch, thought string, at time.Time, more ...content.Block) *tract.Response {
		t.Helper()
		now = at
		return must(repo.Branch(branch).Ask(ctx, says(append([]content.Block{think(thought)}, more...)...), "Go on.", tract.AskOptions{}))(t)
	}
	gone := ask("main", "the-old-thought", old, content.Assistant("so"))
	pin := ask("main", "the-pinned-thought", old, content.Assistant("so"))
	must(repo.Branch("main").Annotate(ctx, pin.ReasoningCommits[0].String(), priority.Pinned, ""))(t)
	ask("main", "the-same-thought", old, content.Assistant("so"))
	ask("other", "the-same-thought", young, content.Assistant("so"))
	ask("main", "the-young-thought", young, content.Assistant("so"))
	ask("tools", "the-open-thought", old, content.ToolCall{CallID: "1", Name: "f", Arguments: "{}"})
	now = young
	before := sent(t, repo, "main")

	p := maintain.PurgeOptions{Reasoning: true, OlderThan: 7 * 24 * time.Hour, Why: "older than 7d", Time: young, DryRun: true}
	for _, dry := range []bool{true, false} {
		p.DryRun = dry
		got := must(maintain.Purge(ctx, repo, p))(t)
		if len(got.Commits) != 1 || got.Commits[0].ID != gone.ReasoningCommits[0] || got.Spared != (maintain.Spared{Young: 2, Pinned: 1, Open: 1, Shared: 1}) {
			t.Errorf("dry %t: %+v", dry, got)
		}
		if dry == (got.Objects == 1) || got.Bytes < int64(len("the-old-thought")) {
			t.Errorf("dry %t: %d objects, %d bytes", dry, got.Objects, got.Bytes)
		}
	}
	wantNoWord(t, dir, 1, "the-old-thought")
	if after := sent(t, repo, "main"); after != before {
		t.Errorf("the prompt is %q, and was %q", after, before)
	}
	c := must(repo.Show(ctx, gone.ReasoningCommits[0].String()))(t)
	if c.Tombstone == nil || c.Tombstone.Why != "older than 7d" || c.Block.String() != "" {
		t.Errorf("show: %+v, block %+v", c.Tombstone, c.Block)
	}
	pr := must(repo.Compile(ctx, "main", tract.CompileOptions{IncludeReasoning: true}))(t)
	if e := pr.Entries[1]; e.InPrompt || !strings.HasPrefix(string(e.Why()), "purged ") || !strings.HasSuffix(string(e.Why()), ": older than 7d") {
		t.Errorf("compile: %+v", e)
	}
	for tr, err := range inspect.Reasoning(ctx, repo, inspect.ReasoningOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if (tr.Commit.Tombstone != nil) != (tr.Commit.ID == gone.ReasoningCommits[0]) {
			t.Errorf("the thought %q: %+v", tr.Block.Text, tr.Commit.Tombstone)
		}
	}
	for x, err := range inspect.Verify(ctx, repo, noTargets, inspect.VerifyOptions{}) {
		if err != nil || x.Outcome == inspect.Differs {
			t.Errorf("verify: %+v, %v", x, err)
		}
	}
	if got := must(maintain.Purge(ctx, repo, p))(t); len(got.Commits) != 0 || got.Objects != 0 {
		t.Errorf("purged again: %+v", got)
	}
	p.OlderThan = 0
	if got := must(maintain.Purge(ctx, repo, p))(t); len(got.Commits) != 3 || got.Spared != (maintain.Spared{Pinned: 1, Open: 1}) { // the same thought on two branches
		t.Errorf("all of them: %+v", got)
	}
	if got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{pin.ReasoningCommits[0].String()}}))(t); len(got.Commits) != 1 {
		t.Errorf("by its revision: %+v", got)
	}
	wantNoWord(t, dir, 4, "the-old-thought", "the-pinned-thought", "the-same-thought", "the-young-thought")
}

func noTargets(*compile.Manifest) (llm.Target, error) { return nil, nil }

func TestPurgeOfReasoningByHistory(t *testing.T) {
	repo := open(t)
	ctx := t.Context()
	first := must(repo.Branch("main").Ask(ctx, says(think("one"), content.Assistant("a")), "q", tract.AskOptions{}))(t)
	tip := first.Commits[len(first.Commits)-1].String()
	must(repo.Branch("main").Ask(ctx, says(think("two"), content.Assistant("a")), "q", tract.AskOptions{}))(t)
	must(repo.Branch("side").Ask(ctx, says(think("three"), content.Assistant("a")), "q", tract.AskOptions{}))(t)
	for _, c := range []struct {
		revs []string
		want int
	}{{nil, 3}, {[]string{"main"}, 2}, {[]string{tip}, 1}, {[]string{tip + "..main"}, 1}, {[]string{"main", "side"}, 3}} {
		if got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Reasoning: true, Revs: c.revs, DryRun: true}))(t); len(got.Commits) != c.want {
			t.Errorf("%v: %d blocks go, want %d", c.revs, len(got.Commits), c.want)
		}
	}
	if _, err := maintain.Purge(ctx, repo, maintain.PurgeOptions{Reasoning: true, Revs: []string{"nowhere"}}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("an unknown revision: %v", err)
	}
	if _, err := maintain.Purge(ctx, repo, maintain.PurgeOptions{Reasoning: true, Secrets: true}); err == nil {
		t.Error("reasoning and secrets were purged at once")
	}
}

// TestPurgedContentIsInNoFile purges a question with a label that two branches share, a
// tool result, and a long file that has a chunk in common with another.
func TestPurgedContentIsInNoFile(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	id := func(b content.Block, o ...tract.AppendOptions) string {
		t.Helper()
		return must(main.Append(ctx, []content.Block{b}, opt(o)))(t)[0].String()
	}
	question := id(content.User("my password is hunter2"), tract.AppendOptions{Label: "the hunter3 question"})
	must(repo.Branch("other").Append(ctx, []content.Block{content.User("my password is hunter2")}, tract.AppendOptions{}))(t)
	edit := must(main.Edit(ctx, question, "my password is hunter4", tract.EditOptions{}))(t)
	id(content.ToolCall{CallID: "c1", Name: "read", Arguments: "{}"})
	result := id(content.ToolResult{CallID: "c1", Text: "contents of hunter5"})
	common := strings.Repeat("<common part>", objects.MaxSize/13+1)[:objects.MaxSize]
	pad := strings.Repeat("x", objects.MaxSize-40)
	file := id(content.Media{Of: content.KindFile, MediaType: "text/plain", Data: pad + "hunter6" + common[:objects.MaxSize]})
	id(content.Media{Of: content.KindFile, MediaType: "text/plain", Data: pad + "hunter7" + common[:objects.MaxSize]})

	if got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{question}, DryRun: true}))(t); len(got.Commits) != 1 ||
		len(got.Shared) != 1 || len(got.Edits) != 1 || got.Edits[0].ID != edit || got.Objects != 0 {
		t.Errorf("dry: %+v", got)
	}
	got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{question, result, file}, Why: "a leak"}))(t)
	if len(got.Commits) != 3 || got.Bytes == 0 || got.SizeAfter == 0 {
		t.Errorf("purge: %d commits, %d bytes, %d of %d in the file", len(got.Commits), got.Bytes, got.SizeAfter, got.SizeBefore)
	}
	wantNoWord(t, dir, got.Objects, "hunter2", "hunter3", "hunter5", "hunter6")
	if c := must(repo.Show(ctx, question))(t); c.Tombstone == nil || !c.Label.IsZero() {
		t.Errorf("the question is %+v with the label %+v", c.Tombstone, c.Label)
	}
	if got := sent(t, repo, "main"); !strings.HasPrefix(got, "user:my password is hunter4 | tool-call:{} | tool-result:[purged] | ") {
		t.Errorf("the prompt begins %.100q", got)
	}
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{edit.String()}}))(t)
	wantNoWord(t, dir, got.Objects+1, "hunter4")
	if got := sent(t, repo, "main"); strings.Contains(got, "password") {
		t.Errorf("the prompt begins %.100q", got)
	}
	if again := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{question}}))(t); len(again.Commits) != 0 || again.Objects != 0 {
		t.Errorf("purged again: %+v", again)
	}
	seen := must(repo.Compile(ctx, "main", tract.CompileOptions{}))(t)
	other := seen.Messages[len(seen.Messages)-1].Blocks
	if m, ok := other[len(other)-1].(content.Media); !ok || !strings.Contains(m.Data, "hunter7") || !strings.HasSuffix(m.Data, common) {
		t.Error("the file that shares a part is not whole")
	}
}

// TestMaskedBlocksReplaceThoseWithSecrets masks on every branch where a block counts:
// also in the reason of an annotation, and under a seal that no open loop needs.
func TestMaskedBlocksReplaceThoseWithSecrets(t *testing.T) {
	repo, dir := onDisk(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
	ctx := t.Context()
	main := repo.Branch("main")
	key := func(n int) string { return fmt.Sprintf("ghp_%daB3dE6aB3dE6aB3dE6aB3dE6aB3dE6aB3dE", n) }
	sealed := content.Reasoning{Text: "key " + key(1), Format: content.FormatAnthropic, Wire: content.Form{Seal: content.Seal{Type: content.Signature, Data: "sig", Minted: "messages/m"}}.Wire()}
	r := must(main.Ask(ctx, says(sealed, content.Assistant("done")), "use "+key(2), tract.AskOptions{}))(t)
	must(main.Annotate(ctx, r.Commits[0].String(), priority.Pinned, key(3)+" is in it"))(t)
	must(main.Fork(ctx, "fork", "main"))(t)
	edited := must(main.Append(ctx, []content.Block{content.Assistant(key(4))}, tract.AppendOptions{}))(t)[0]
	must(main.Edit(ctx, edited.String(), "clean already", tract.EditOptions{}))(t)
	must(repo.Branch("loop").Ask(ctx, says(content.Reasoning{Text: "key " + key(5), Wire: sealed.Wire}, content.ToolCall{CallID: "1", Name: "f"}), "go", tract.AskOptions{}))(t)

	p := maintain.PurgeOptions{Secrets: true, Mask: true, Author: "ada", Time: time.UnixMilli(1000)}
	got := must(maintain.Purge(ctx, repo, p))(t)
	if len(got.Commits) != 4 || len(got.Remaining) != 1 || !got.Remaining[0].Open || len(got.Masked["main"]) != 3 || len(got.Masked["fork"]) != 3 || len(got.Masked["loop"]) != 0 {
		t.Errorf("%+v", got)
	}
	operations := map[objects.Group]bool{}
	for branch, ids := range got.Masked {
		log := must(repo.Store().Log(ctx, "refs/heads/"+branch, 0, 1))(t)
		if c := must(repo.Show(ctx, ids[0].String()))(t); c.Author != "ada" || !c.Time.Equal(p.Time) || log[0].Note.Author != "ada" || !log[0].Note.Time.Equal(p.Time) {
			t.Errorf("%s: edited by %q at %s, in the ref log %+v", branch, c.Author, c.Time, log[0].Note)
		}
		operations[log[0].Note.Group] = true
	}
	if len(operations) != 1 {
		t.Errorf("the masks are %d operations", len(operations))
	}
	wantNoWord(t, dir, 4, key(1), key(2), key(3), key(4))
	for branch, want := range map[string]string{
		"main": "user:use " + secrets.Mask(key(2)) + " | reasoning:key " + secrets.Mask(key(1)) + " | assistant:done | assistant:clean already",
		"fork": "user:use " + secrets.Mask(key(2)) + " | reasoning:key " + secrets.Mask(key(1)) + " | assistant:done",
	} {
		if got := sent(t, repo, branch); got != want {
			t.Errorf("%s: %s", branch, got)
		}
		pr := must(repo.Compile(ctx, branch, tract.CompileOptions{}))(t)
		for _, e := range pr.Entries {
			if e.Kind == content.KindReasoning && e.Op == commit.Append && string(e.Why()) != "annotated: "+secrets.Mask(key(3))+" is in it" {
				t.Errorf("%s: the reasoning is sent because %q", branch, e.Why())
			}
		}
	}
	if again := must(maintain.Purge(ctx, repo, p))(t); len(again.Commits) != 0 || len(again.Masked) != 0 || again.Objects != 0 {
		t.Errorf("masked again: %+v", again)
	}
}

// TestVerifyAfterToolsWerePurged purges the definitions of tools by their id.
func TestVerifyAfterToolsWerePurged(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	tool := llm.Tool{Name: "look", Description: "uses the key sk-1", Schema: []byte(`{"type":"object"}`)}
	must(repo.Branch("main").Ask(ctx, says(content.Assistant("done")), "go on", tract.AskOptions{Tools: []llm.Tool{tool}}))(t)
	var tools string
	for x, err := range inspect.Verify(ctx, repo, noTargets, inspect.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		tools = x.Manifest.Tools.String()
	}
	if got := must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{tools}}))(t); got.Objects != 1 || len(got.Commits) != 0 || len(got.Others) != 1 {
		t.Errorf("%+v", got)
	}
	wantNoWord(t, dir, 1, "sk-1")
	for x, err := range inspect.Verify(ctx, repo, noTargets, inspect.VerifyOptions{}) {
		if err != nil || x.Outcome != inspect.Purged || !strings.HasPrefix(x.Why, "its tools were purged ") {
			t.Errorf("verify: %+v, %v", x, err)
		}
	}
}

// TestCopiesOfAStoreHaveItsTombstones: a backup and a recovered store neither have the
// words nor miss them.
func TestCopiesOfAStoreHaveItsTombstones(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	id := must(repo.Branch("main").Append(ctx, []content.Block{content.User("hunter2")}, tract.AppendOptions{}))(t)[0]
	must(repo.Branch("main").Append(ctx, []content.Block{content.Assistant("yes")}, tract.AppendOptions{}))(t)
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{id.String()}, Why: "a leak"}))(t)
	backup, saved := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "saved")
	must(maintain.Backup(ctx, repo, backup, maintain.BackupOptions{}))(t)
	r := must(maintain.Recover(ctx, dir, saved, maintain.RecoverOptions{}))(t)
	if r.Purged != 1 || r.Lost != 0 || len(r.Rescued) != 0 {
		t.Errorf("recover: %+v", r)
	}
	for _, at := range []string{backup, saved} {
		wantNoWord(t, at, 1, "hunter2")
		copied := must(tract.Open(ctx, at, tract.OpenOptions{}))(t)
		if c := must(copied.Show(ctx, id.String()))(t); c.Tombstone == nil || c.Tombstone.Why != "a leak" {
			t.Errorf("%s: %+v", filepath.Base(at), c.Tombstone)
		}
		if got := sent(t, copied, "main"); got != "assistant:yes" {
			t.Errorf("%s: %s", filepath.Base(at), got)
		}
		_ = copied.Close()
	}
}
