package tract_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tract-vcs/tract"
)

// TestTheIndexForgetsWhatIsErased prunes while another process has the index in its
// hands, and writes it again: the marks of what went are not in it. Pruned thoughts are
// listed as such, with and without it.
func TestTheIndexForgetsWhatIsErased(t *testing.T) {
	h := newThinker(t)
	h.index = filepath.Join(h.dir, tract.TraceFile)
	other := must(tract.Open(t.Context(), h.dir, tract.TraceIndex(h.index)))(t)
	defer other.Close()
	quokkas := tract.Find(tract.Likely{Words: regexp.MustCompile("Quokka")})
	marked := func(repo *tract.Repo) (n int) { // those that the index lets through, the words of which nobody looks at
		t.Helper()
		for trace, err := range repo.Traces(t.Context(), "", quokkas) {
			if err != nil {
				t.Fatal(err)
			}
			if trace.Commit.Erased != nil {
				t.Fatalf("the index knows what %s thought", trace.Commit.ID.Short())
			}
			n++
		}
		return n
	}
	fromFile := func() int {
		t.Helper()
		repo := must(tract.Open(t.Context(), h.dir, tract.ReadOnly(), tract.TraceIndex(h.index)))(t)
		defer repo.Close()
		return marked(repo)
	}
	h.turns("b1", 1100)
	if n := marked(other); n < 10 {
		t.Fatalf("%d thoughts have the word", n)
	}
	written := must(os.ReadFile(h.index))(t)
	broken := h.index + ".123"
	if err := os.WriteFile(broken, written, 0o600); err != nil {
		t.Fatal(err)
	}
	got := must(h.repo.Prune(t.Context(), tract.Pruning{Why: "old"}))(t)
	if len(got.Thoughts) != 1100 {
		t.Errorf("%d thoughts were pruned", len(got.Thoughts))
	}
	for _, name := range []string{h.index, broken} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", filepath.Base(name))
		}
	}
	wantNoWord(t, h.dir, got.Objects, "Quokka", "quokka")
	h.turns("b2", 20)
	h.turns("b3", 1100)
	inUse := marked(other)
	if _, err := os.Stat(h.index); err != nil {
		t.Errorf("the index is not written again: %v", err)
	}
	if n := fromFile(); n != inUse || n < 13 {
		t.Errorf("%d thoughts have the word by the index that was in use, %d by the file, want 13 and some by chance", inUse, n)
	}
	pruned := 0
	for trace, err := range other.Traces(t.Context(), "", tract.Find(tract.Likely{Session: "b1"})) {
		if err != nil {
			t.Fatal(err)
		}
		if trace.Commit.Erased != nil && trace.Block.Text == "" {
			pruned++
		}
	}
	if pruned != 1100 {
		t.Errorf("%d thoughts are listed as pruned", pruned)
	}
	h.same("after the prune")
}

// TestEraseWithoutAnIndexDropsTheOneOfOthers: a program that uses no index takes away
// the one beside the store, which others made.
func TestEraseWithoutAnIndexDropsTheOneOfOthers(t *testing.T) {
	repo, dir := onDisk(t)
	index := filepath.Join(dir, tract.TraceFile)
	if err := os.WriteFile(index, []byte("marks of hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := must(repo.Branch("main").User(t.Context(), "hunter2"))(t)
	got := must(repo.Purge(t.Context(), tract.Purging{Revs: []string{id.String()}}))(t)
	wantNoWord(t, dir, got.Objects, "hunter2")
	if _, err := os.Stat(index); err == nil {
		t.Error("the index is still there")
	}
}
