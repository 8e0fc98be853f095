package maintain_test

import (
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// TestGCOfMergedLinesThatGoOn packs a small store in which both lines of a merge go on
// after it: the ids of most commits are worked out when it is read, and of a merge whose
// parents both were without one, these would look alike. The line that is merged lies
// before the other.
func TestGCOfMergedLinesThatGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	repo := must(tract.Open(t.Context(), dir, tract.OpenOptions{Create: true, Author: "ada"}))(t)
	main := repo.Branch("main")
	must(main.AppendUser(t.Context(), "Where to?"))(t)
	aside := must(main.Fork(t.Context(), "aside", "HEAD"))(t)
	oslo := []content.Block{content.Assistant("Oslo."), content.User("And then?")}
	bergen := []content.Block{content.Assistant("Bergen."), content.User("And then?")}
	for range 3 {
		must(main.Append(t.Context(), oslo, tract.AppendOptions{}))(t)
		must(aside.Append(t.Context(), bergen, tract.AppendOptions{}))(t)
		must(aside.Merge(t.Context(), "main", tract.MergeOptions{}))(t)
	}
	must(main.AppendUser(t.Context(), "Go on."))(t)
	must(aside.AppendUser(t.Context(), "Go on too."))(t)
	tips := [2]objects.ID{must(main.Tip(t.Context()))(t), must(aside.Tip(t.Context()))(t)}
	before := [2]string{sent(t, repo, "main"), sent(t, repo, "aside")}
	must(maintain.GC(t.Context(), repo, objects.Sweep{}))(t)
	if err := repo.Close(); err != nil {
		t.Fatal(err)
	}
	again := must(tract.Open(t.Context(), dir, tract.OpenOptions{}))(t)
	defer func() { _ = again.Close() }()
	for i, name := range []string{"main", "aside"} {
		if tip := must(again.Resolve(t.Context(), name))(t); tip != tips[i] {
			t.Errorf("%s is at %s, want %s", name, tip.Short(), tips[i].Short())
		}
		if got := sent(t, again, name); got != before[i] {
			t.Errorf("%s sends\n%s\nwant\n%s", name, got, before[i])
		}
	}
	if h := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t); !h.OK() {
		t.Errorf("%+v", h)
	}
}
