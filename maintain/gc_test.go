package maintain_test

import (
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// TestGCAfterAMergeOfGrowingBranches runs gc on a small store in which both branches of a merge have
// commits after it. The ids of most commits are computed when a pack is read; if both parents of a
// merge had no stored id, they could not be told apart. The merged branch lies before the other one.
func TestGCAfterAMergeOfGrowingBranches(t *testing.T) {
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
