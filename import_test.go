package tract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/importers"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/priority"
)

// foreign is the messages of a log, each session on the branch of its id.
func foreign(text []byte) iter.Seq2[tract.ImportedMessage, error] {
	return func(yield func(tract.ImportedMessage, error) bool) {
		for e, err := range importers.Read("log", bytes.NewReader(text), importers.Auto) {
			f := tract.ImportedMessage{Branch: strings.Trim("s"+e.Session+"/"+e.Thread, "/"), From: e.From, Origin: commit.Origin{
				Model: e.Model, Dialect: e.Dialect, ResponseID: e.ResponseID, Usage: e.Usage, Importer: e.Importer, Original: e.Original,
			}}
			for _, p := range e.Parts {
				f.Parts = append(f.Parts, tract.ImportedPart{ID: p.ID, Time: p.Time, Block: p.Block})
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func sessionLogs(t *testing.T) map[string][]byte {
	t.Helper()
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../shared"
	}
	files, _ := filepath.Glob(filepath.Join(shared, "sessions/claude-code/*.jsonl"))
	own, err := filepath.Glob("internal/importers/testdata/claude-[pf]*.jsonl")
	if err != nil || len(own) == 0 {
		t.Fatal("no logs in internal/importers/testdata")
	}
	logs := map[string][]byte{}
	for _, file := range append(files, own...) {
		if logs[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

func memory(t *testing.T, o ...tract.OpenOptions) *tract.Repo {
	t.Helper()
	repo, err := tract.Open(t.Context(), "mem:", opt(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	return repo
}

// branches is the commits of every branch, oldest first.
func branches(t *testing.T, repo *tract.Repo) map[string][]*commit.Commit {
	t.Helper()
	all := map[string][]*commit.Commit{}
	for b, err := range repo.Refs(t.Context(), tract.RefQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range repo.Log(t.Context(), b.Name, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			all[b.Name] = append([]*commit.Commit{c}, all[b.Name]...)
		}
	}
	return all
}

// TestImportBringsASessionOnce: what it brought it does not bring again, and what
// it brought can be sent.
func TestImportBringsASessionOnce(t *testing.T) {
	target, err := providers.Open("anthropic", providers.Config{Model: "claude-opus-4-5"})
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range sessionLogs(t) {
		t.Run(name, func(t *testing.T) {
			repo := memory(t)
			plan, err := repo.Import(t.Context(), foreign(log), tract.ImportOptions{DryRun: true})
			if err != nil || len(branches(t, repo)) != 0 {
				t.Fatalf("a plan wrote, or %v", err)
			}
			first, err := repo.Import(t.Context(), foreign(log), tract.ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			again, err := repo.Import(t.Context(), foreign(log), tract.ImportOptions{})
			if err != nil || len(first) != len(again) || len(first) != len(plan) {
				t.Fatal(first, again, plan, err)
			}
			for i, b := range first {
				if b.Added != b.Parts || b.Added == 0 || again[i].Added != 0 || again[i].Tip != b.Tip || again[i].Parts != b.Parts || plan[i].Added != b.Added {
					t.Errorf("first %+v, again %+v, planned %+v", b, again[i], plan[i])
				}
			}
			for branch, commits := range branches(t, repo) {
				for _, c := range commits {
					if c.Origin == nil || c.Origin.Source != commit.SourceImport || c.Origin.Importer != "claude-code" || c.Origin.Original["uuid"] == "" {
						t.Fatalf("%s: the origin of %s is %+v", branch, c.ID.Short(), c.Origin)
					}
					if c.Priority != priority.Unset || c.Kind == content.KindSystem || c.Time.Year() != 2026 {
						t.Errorf("%s: %s is %s, %s, of %s", branch, c.ID.Short(), c.Kind, c.Priority, c.Time)
					}
				}
				req, err := repo.Request(t.Context(), branch, target, tract.RequestOptions{IncludeReasoning: true})
				if err != nil {
					t.Fatalf("%s cannot be sent: %v", branch, err)
				}
				for _, c := range commits {
					if seal := c.Block.Form().Seal.Data; !bytes.Contains(req.Body, []byte(seal)) {
						t.Errorf("%s is sent without the seal of %s", branch, c.ID.Short())
					}
				}
			}
		})
	}
}

// TestImportOfALogThatGrows imports a log after each of its lines: in the end it
// is what one import brings.
func TestImportOfALogThatGrows(t *testing.T) {
	logs := sessionLogs(t)
	for _, name := range []string{"claude-forks.jsonl", "claude-parallel.jsonl", "forks-small.jsonl", "plain-thinking.jsonl"} {
		lines := bytes.SplitAfter(logs[name], []byte("\n"))
		if len(lines) < 2 {
			continue // no shared folder
		}
		bit, whole := memory(t), memory(t)
		total := 0
		for n := range lines {
			done, err := bit.Import(t.Context(), foreign(bytes.Join(lines[:n+1], nil)), tract.ImportOptions{})
			if unknown := (*importers.UnknownError)(nil); err != nil && !errors.As(err, &unknown) {
				t.Fatalf("%s: after line %d: %v", name, n+1, err)
			}
			for _, b := range done {
				total += b.Added
			}
		}
		if _, err := whole.Import(t.Context(), foreign(logs[name]), tract.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		have, want := branches(t, bit), branches(t, whole)
		if len(have) != len(want) {
			t.Errorf("%s: %d branches, want %d", name, len(have), len(want))
		}
		for branch := range want {
			keys := func(list []*commit.Commit) map[commit.Key]int {
				m := map[commit.Key]int{}
				for _, c := range list {
					m[c.Key]++
				}
				return m
			}
			a, b := keys(have[branch]), keys(want[branch])
			for key, n := range b {
				if n != 1 || a[key] != 1 {
					t.Errorf("%s: %s: %s came %d times in pieces, %d at once", name, branch, key, a[key], n)
				}
			}
			if len(a) != len(b) {
				t.Errorf("%s: %s: %d commits in pieces, %d at once", name, branch, len(a), len(b))
			}
		}
	}
}

// halfWritten is a log of one answer, whose last line tells what it cost.
const halfWritten = `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Why?"}}
{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"id":"msg_1","model":"m","content":[{"type":"thinking","thinking":"Hm.","signature":"s"}],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":3}}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"msg_1","model":"m","content":[{"type":"text","text":"So."}],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":3}}}
{"type":"assistant","uuid":"c","parentUuid":"b","sessionId":"s","message":{"id":"msg_1","model":"m","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":1104}}}
`

// TestImportCountsAMessageOnce, by the last of its lines, also when a later import brings
// some of them: a log that was imported after each line costs what it costs in one go.
func TestImportCountsAMessageOnce(t *testing.T) {
	logs := sessionLogs(t)
	for name, log := range map[string][]byte{
		"half written": []byte(halfWritten), "parallel": logs["claude-parallel.jsonl"], "forks": logs["forks-small.jsonl"], "plain": logs["plain-thinking.jsonl"],
	} {
		bit, whole := memory(t), memory(t)
		lines := bytes.SplitAfter(log, []byte("\n"))
		for n := range lines {
			_, err := bit.Import(t.Context(), foreign(bytes.Join(lines[:n+1], nil)), tract.ImportOptions{})
			if unknown := (*importers.UnknownError)(nil); err != nil && !errors.As(err, &unknown) {
				t.Fatal(name, err)
			}
		}
		if _, err := whole.Import(t.Context(), foreign(log), tract.ImportOptions{}); err != nil && len(log) > 0 {
			t.Fatal(name, err)
		}
		cost := func(repo *tract.Repo) (list []string) {
			for reply, err := range inspect.Usage(t.Context(), repo, inspect.UsageOptions{}) {
				if err != nil {
					t.Fatal(name, err)
				}
				list = append(list, fmt.Sprintf("%s %d %d %v", reply.Commit.Origin.Model, reply.Reasoning, reply.Commit.Origin.Usage.Input, reply.Commit.Origin.Usage.Output))
			}
			slices.Sort(list)
			return list
		}
		have, want := cost(bit), cost(whole)
		if !slices.Equal(have, want) {
			t.Errorf("%s: in pieces %v, at once %v", name, have, want)
		}
		if name == "half written" && (len(want) != 1 || !strings.HasSuffix(want[0], " 7 1104")) {
			t.Errorf("at once it costs %v", want)
		}
	}
}

// TestImportRefusesABranchThatContinued checks that an import leaves a branch alone that got other
// commits after an earlier import.
func TestImportRefusesABranchThatContinued(t *testing.T) {
	ctx := t.Context()
	repo := memory(t)
	say := func(words ...string) iter.Seq2[tract.ImportedMessage, error] {
		return func(yield func(tract.ImportedMessage, error) bool) {
			for _, w := range words {
				if !yield(tract.ImportedMessage{Branch: "b", Parts: []tract.ImportedPart{{ID: w, Block: content.User(w)}}}, nil) {
					return
				}
			}
		}
	}
	if _, err := repo.Import(ctx, say("one", "two"), tract.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	var diverged *tract.DivergedError
	if _, err := repo.Import(ctx, say("one", "TWO"), tract.ImportOptions{}); !errors.As(err, &diverged) || diverged.Branch != "b" {
		t.Errorf("another source gives %v", err)
	}
	if _, err := repo.Branch("b").Annotate(ctx, "b", priority.Pinned, ""); err != nil {
		t.Fatal(err)
	}
	if done, err := repo.Import(ctx, say("one", "two", "three"), tract.ImportOptions{}); err != nil || done[0].Added != 1 {
		t.Errorf("after an annotation: %+v, %v", done, err)
	}
	if _, err := repo.Branch("b").AppendUser(ctx, "my own"); err != nil {
		t.Fatal(err)
	}
	if done, err := repo.Import(ctx, say("one", "two", "three"), tract.ImportOptions{}); err != nil || done[0].Added != 0 || done[0].Parts != 3 {
		t.Errorf("the same once more: %+v, %v", done, err)
	}
	if _, err := repo.Import(ctx, say("one", "two", "three", "four"), tract.ImportOptions{}); !errors.As(err, &diverged) {
		t.Errorf("a branch with words of its own gives %v", err)
	}
	if _, err := repo.Import(ctx, say("no ..name"), tract.ImportOptions{}); err != nil {
		t.Logf("an id may be anything: %v", err)
	}
	for _, bad := range []tract.ImportedMessage{{Branch: "a..b"}, {Branch: "c", From: "nothing", Parts: []tract.ImportedPart{{ID: "x", Block: content.User("x")}}}} {
		_, err := repo.Import(ctx, func(yield func(tract.ImportedMessage, error) bool) { yield(bad, nil) }, tract.ImportOptions{})
		if err == nil {
			t.Errorf("%+v is imported", bad)
		}
	}
}

// TestImportForksAfterAnEmptyPart checks that a thread that follows a part without content begins
// after the part before that one, also when the log had grown beyond it before the fork was
// imported, and that a dry run accepts such a log.
func TestImportForksAfterAnEmptyPart(t *testing.T) {
	ctx := t.Context()
	part := func(branch, from, id, text string) tract.ImportedMessage {
		m := one(branch, id, text)
		m.From = from
		return m
	}
	log := []tract.ImportedMessage{
		part("main", "", "0", ""), part("main", "", "1", "first"), part("main", "", "2", ""), part("main", "", "3", "third"),
		part("fork", "2", "4", ""), part("fork", "2", "5", "other third"), part("nested", "4", "6", "one more"), part("root", "0", "7", "other first"),
	}
	want := map[string][]string{
		"main": {"first", "third"}, "fork": {"first", "other third"}, "nested": {"first", "one more"}, "root": {"other first"},
	}
	for before := range log {
		repo := memory(t)
		must(repo.Import(ctx, inOrder(log[:before]...), tract.ImportOptions{}))(t)
		plan, err := repo.Import(ctx, inOrder(log...), tract.ImportOptions{DryRun: true})
		if err != nil {
			t.Errorf("after %d messages, a dry run: %v", before, err)
		}
		done, err := repo.Import(ctx, inOrder(log...), tract.ImportOptions{})
		if err != nil {
			t.Errorf("after %d messages: %v", before, err)
			continue
		}
		for i, b := range done {
			if i < len(plan) && plan[i].Added != b.Added {
				t.Errorf("after %d messages: branch %s got %d parts, the dry run said %d", before, b.Branch, b.Added, plan[i].Added)
			}
		}
		for name, commits := range branches(t, repo) {
			var have []string
			for _, c := range commits {
				have = append(have, c.Block.String())
			}
			if !slices.Equal(have, want[name]) {
				t.Errorf("after %d messages: branch %s is %q, want %q", before, name, have, want[name])
			}
		}
	}
}

// TestImportKeepsWhatCameBeforeAnError, of the list or of the person who stops it.
func TestImportKeepsWhatCameBeforeAnError(t *testing.T) {
	repo := memory(t)
	damage := errors.New("damaged")
	many := func(stop func(int) error) iter.Seq2[tract.ImportedMessage, error] {
		return func(yield func(tract.ImportedMessage, error) bool) {
			for i := range 1000 {
				err := stop(i)
				f := tract.ImportedMessage{Branch: "b", Parts: []tract.ImportedPart{{ID: time.Duration(i).String(), Block: content.User("x")}}}
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
	done, err := repo.Import(t.Context(), many(func(i int) error {
		if i == 300 {
			return damage
		}
		return nil
	}), tract.ImportOptions{})
	if !errors.Is(err, damage) || done[0].Added != 300 || len(branches(t, repo)["b"]) != 300 {
		t.Errorf("%+v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, err = repo.Import(ctx, many(func(i int) error {
		if i == 900 {
			cancel()
		}
		return nil
	}), tract.ImportOptions{})
	if have := len(branches(t, repo)["b"]); !errors.Is(err, context.Canceled) || done[0].Added != have-300 || have <= 300 || have >= 1000 {
		t.Errorf("%+v, %d commits, %v", done, have, err)
	}
}

// TestAppendResponseAddsASavedResponse as one message with where it came from, once.
func TestAppendResponseAddsASavedResponse(t *testing.T) {
	ctx := t.Context()
	b := memory(t).Branch("main")
	if _, err := b.AppendUser(ctx, "Why?"); err != nil {
		t.Fatal(err)
	}
	reply := &llm.Response{
		Head:   llm.Head{ID: "msg_1", Model: "claude-opus-4-5", Finish: "end_turn", Usage: content.Usage{Input: 3, Output: 5}},
		From:   llm.Address{Provider: "anthropic", Dialect: "messages"},
		Blocks: []content.Block{content.Reasoning{Text: "Hm."}, content.Assistant("Because.")},
	}
	first, err := b.AppendResponse(ctx, reply, tract.AppendOptions{})
	if err != nil || len(first) != 2 {
		t.Fatal(first, err)
	}
	again, err := b.AppendResponse(ctx, reply, tract.AppendOptions{})
	if err != nil || len(again) != 2 || again[1] != first[1] {
		t.Errorf("a second time gives %v, %v", again, err)
	}
	if _, err := b.AppendResponse(ctx, &llm.Response{}, tract.AppendOptions{}); !errors.Is(err, tract.ErrEmpty) {
		t.Errorf("a reply without a block gives %v", err)
	}
}

// TestKeysOfDifferentKindsDiffer: who chose a key, and of which importer it is a position,
// are fields of it; no text that a caller or a source chooses counts as another key.
func TestKeysOfDifferentKindsDiffer(t *testing.T) {
	ctx := t.Context()
	repo := memory(t)
	main := repo.Branch("main")
	must(main.Ask(ctx, says(content.Assistant("Blue.")), "Colour?", tract.AskOptions{Key: "k"}))(t)
	must(main.AppendResponse(ctx, &llm.Response{Head: llm.Head{ID: "r1"}, Blocks: []content.Block{content.Assistant("Red.")}}, tract.AppendOptions{}))(t)
	for _, key := range []string{"k#reply", "k (reply)", "r1", "reply/r1"} {
		before := must(main.Tip(ctx))(t)
		if id := must(onlyID(main.Append(ctx, []content.Block{content.User("of key " + key)}, tract.AppendOptions{Key: key})))(t); id == before {
			t.Errorf("key %q was taken for another", key)
		}
	}
	must(repo.Branch("log").Append(ctx, []content.Block{content.User("begins")}, tract.AppendOptions{Key: "import//1#0"}))(t)
	var diverged *tract.DivergedError
	if _, err := repo.Import(ctx, inOrder(one("log", "1", "begins")), tract.ImportOptions{}); !errors.As(err, &diverged) {
		t.Errorf("a key of a caller was taken for a position: %v", err)
	}
	of := func(importer, id, text string) tract.ImportedMessage {
		f := one("two", id, text)
		f.Origin.Importer = importer
		return f
	}
	must(repo.Import(ctx, inOrder(of("x", "y/z", "first")), tract.ImportOptions{}))(t)
	if done, err := repo.Import(ctx, inOrder(of("x/y", "z", "second")), tract.ImportOptions{}); !errors.As(err, &diverged) {
		t.Errorf("the position of one importer was taken for that of another: %+v, %v", done, err)
	}
}
