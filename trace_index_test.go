package tract_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// thinker is a store with more thoughts than an index is written for.
type thinker struct {
	t     *testing.T
	dir   string
	index string
	repo  *tract.Repo // without an index
	now   time.Time
}

func newThinker(t *testing.T) *thinker {
	dir := t.TempDir()
	h := &thinker{t: t, dir: filepath.Join(dir, "store"), index: filepath.Join(dir, "traces.idx"), now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	h.repo = must(tract.Open(t.Context(), h.dir, tract.Create()))(t)
	t.Cleanup(func() { h.repo.Close() })
	return h
}

// turns adds turns with a thought each to a branch, in one transaction.
func (h *thinker) turns(branch string, n int) {
	h.t.Helper()
	tip := must(h.repo.Branch(branch).Tip(h.t.Context()))(h.t)
	var list []content.Message
	for i := range n {
		words := fmt.Sprintf("Thought %d of %s. ", i, branch)
		if i%97 == 5 {
			words += "A Quokka stood there."
		}
		list = append(list, content.Message{Role: content.RoleUser, Blocks: []content.Block{content.User("Q")}}, content.Message{
			Role:   content.RoleAssistant,
			Blocks: []content.Block{content.Reasoning{Text: words, Format: content.FormatParsed, Source: []string{"reasoning", "thinking"}[i%2]}, content.Assistant("A")},
		})
	}
	h.now = h.now.Add(time.Hour)
	must(h.repo.Branch(branch).Continue(h.t.Context(), tip, list, tract.Time(h.now)))(h.t)
}

// reply adds an answer of a model with two thoughts.
func (h *thinker) reply(branch, model string) {
	h.t.Helper()
	h.now = h.now.Add(time.Hour)
	must(h.repo.Branch(branch).AppendReply(h.t.Context(), &llm.Response{
		Blocks: []content.Block{think("One quokka."), content.ToolCall{CallID: "c", Name: "n", Arguments: "{}"}, think("And nothing more of it."), content.Assistant("Done.")},
		Head:   llm.Head{Model: model, ID: fmt.Sprint(h.now.Unix()), Usage: content.Usage{Output: 90, Reasoning: 60}},
	}, tract.Time(h.now)))(h.t)
}

// list is what Traces gives that is looked for, in words.
func (h *thinker) list(repo *tract.Repo, rev string, want tract.Likely) (lines []string) {
	h.t.Helper()
	for trace, err := range repo.Traces(h.t.Context(), rev, tract.Numbered(), tract.Find(want)) {
		if err != nil {
			h.t.Fatal(err)
		}
		words := want.Words == nil || want.Words.MatchString(trace.Block.Text)
		if words && (want.Session == "" || trace.Session() == want.Session) && (want.Model == "" || trace.Model() == want.Model) &&
			(want.Turn == 0 || trace.Turn == want.Turn) && (want.Source == "" || trace.Block.Source == want.Source) {
			lines = append(lines, fmt.Sprint(trace.Commit.ID.Short(), trace.Turn, trace.Estimate, trace.Reported, trace.Block.Text))
		}
	}
	return lines
}

// same checks that a repo which has just been opened with the index finds what a
// walk finds, whatever is looked for.
func (h *thinker) same(when string) {
	h.t.Helper()
	repo := must(tract.Open(h.t.Context(), h.dir, tract.ReadOnly(), tract.TraceIndex(h.index)))(h.t)
	defer repo.Close()
	for name, want := range map[string]tract.Likely{
		"all": {}, "words": {Words: regexp.MustCompile(`(?i)quokka`)}, "exact words": {Words: regexp.MustCompile(`Quokka st`)},
		"no literal": {Words: regexp.MustCompile(`\d\d7 of`)}, "none": {Words: regexp.MustCompile("nowhere")},
		"a session": {Session: "b2"}, "a model": {Model: "m1"}, "a source": {Source: "thinking"}, "a turn": {Turn: 7},
		"several": {Session: "b1", Source: "reasoning", Words: regexp.MustCompile("1 of b1")},
	} {
		if have, want := h.list(repo, "", want), h.list(h.repo, "", want); !slices.Equal(have, want) {
			h.t.Errorf("%s, %s: have %d\n%.300s\nwant %d\n%.300s", when, name, len(have), strings.Join(have, "\n"), len(want), strings.Join(want, "\n"))
		}
	}
	if tip := must(h.repo.Branch("b2").Tip(h.t.Context()))(h.t); tip.IsZero() {
		return
	}
	if have, want := h.list(repo, "b2", tract.Likely{}), h.list(h.repo, "b2", tract.Likely{}); !slices.Equal(have, want) {
		h.t.Errorf("%s: of one branch, have %d, want %d", when, len(have), len(want))
	}
}

// TestTheIndexOfThoughtsSaysWhatAWalkSays, while branches grow, fork, go back and
// go away, and whatever becomes of the file.
func TestTheIndexOfThoughtsSaysWhatAWalkSays(t *testing.T) {
	h := newThinker(t)
	h.same("nothing is there")
	for _, b := range []string{"b1", "b2", "b3"} {
		h.turns(b, 400)
	}
	h.reply("b1", "m1")
	if _, err := os.Stat(h.index); err == nil {
		t.Fatal("somebody made the index before it was wanted")
	}
	h.same("made anew")
	written := must(os.ReadFile(h.index))(t)
	h.reply("b2", "m2")
	must(h.repo.Branch("b1").Fork(t.Context(), "b4", "HEAD~500"))(t)
	h.turns("b4", 3)
	h.reply("b4", "m1")
	must(h.repo.Branch("b3").Fork(t.Context(), "b5", "HEAD"))(t)
	h.same("grown")
	if !bytes.Equal(written, must(os.ReadFile(h.index))(t)) {
		t.Error("the file was written for a few thoughts")
	}
	h.turns("b3", 1100)
	h.same("grown by many")
	if bytes.Equal(written, must(os.ReadFile(h.index))(t)) {
		t.Error("the file was not written for many thoughts")
	}
	if err := h.repo.Branch("b2").Reset(t.Context(), "HEAD~60"); err != nil {
		t.Fatal(err)
	}
	h.same("a branch went back")
	if err := h.repo.Branch("b1").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.same("a branch is gone")
	written = must(os.ReadFile(h.index))(t)
	endless := binary.AppendUvarint(nil, 1<<62) // as many tips
	forged := binary.LittleEndian.AppendUint32([]byte("tract traces 1\n"), crc32.Checksum(endless, crc32.MakeTable(crc32.Castagnoli)))
	for name, damage := range map[string][]byte{
		"empty": {}, "forged to be endless": append(forged, endless...), "cut": written[:len(written)/2], "of before": []byte("tract traces 0\n"), "noise": bytes.Repeat([]byte{7}, 5000),
		"flipped": append(slices.Clone(written[:900]), append([]byte{written[900] ^ 1}, written[901:]...)...),
	} {
		if err := os.WriteFile(h.index, damage, 0o600); err != nil {
			t.Fatal(err)
		}
		h.same("the file is " + name)
	}
	if err := os.Remove(h.index); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.index, 0o700); err != nil {
		t.Fatal(err)
	}
	h.same("the file cannot be written")
	if left := must(filepath.Glob(h.index + ".*"))(t); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestAnIndexInUseFollows asks one repo again and again while the history grows.
func TestAnIndexInUseFollows(t *testing.T) {
	h := newThinker(t)
	repo := must(tract.Open(t.Context(), h.dir, tract.TraceIndex(h.index)))(t)
	defer repo.Close()
	seen := map[objects.ID]bool{}
	for n := range 5 {
		h.reply("main", "m")
		have := h.list(repo, "", tract.Likely{Model: "m"})
		if len(have) != 2*(n+1) {
			t.Errorf("%d thoughts, want %d", len(have), 2*(n+1))
		}
	}
	for trace, err := range repo.Traces(t.Context(), "", tract.Find(tract.Likely{Words: regexp.MustCompile("quokka")})) {
		if err != nil || seen[trace.Commit.ID] {
			t.Errorf("%v, again: %t", err, seen[trace.Commit.ID])
		}
		seen[trace.Commit.ID] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d with the word, want 5", len(seen))
	}
}
