package maintain_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// leakyStore is a store on disk with secrets wherever words go.
func leakyStore(t *testing.T, planted []secretstest.Planted) (*tract.Repo, string) {
	t.Helper()
	repo, dir := onDisk(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
	for i, p := range planted {
		name := "b" + strconv.Itoa(i)
		tellEverything(t, repo, name, p.Text())
		if err := repo.Branch(name).Describe(t.Context(), "about "+p.Text()); err != nil {
			t.Fatal(err)
		}
	}
	return repo, dir
}

// soundStore wants nothing of secrets in any file, and everything else in order.
func soundStore(t *testing.T, repo *tract.Repo, dir string, planted []secretstest.Planted) {
	t.Helper()
	if found := leaked(t, dir, repo, planted); len(found) > 0 {
		t.Errorf("secrets are left: %v", found)
	}
	if list := scan(t, repo, maintain.ScanOptions{}); len(list) > 0 {
		t.Errorf("found again: %+v", list)
	}
	if h := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t); !h.OK() || h.Purged == 0 {
		t.Errorf("fsck: %+v", h)
	}
	for x, err := range inspect.Verify(t.Context(), repo, noTargets, inspect.VerifyOptions{}) {
		if err != nil || x.Outcome == inspect.Differs {
			t.Errorf("verify: %+v, %v", x, err)
		}
	}
}

// TestMaskedSecretsAreInNoFile masks the secrets of a store after the fact, wherever they
// are. The prompts are as they were, but for the masks; and once is enough.
func TestMaskedSecretsAreInNoFile(t *testing.T) {
	all := secretstest.Plant(31)
	planted := []secretstest.Planted{all[2], all[15], all[26], all[32]}
	repo, dir := leakyStore(t, planted)
	before := map[string]string{}
	for i := range planted {
		before["b"+strconv.Itoa(i)] = sent(t, repo, "b"+strconv.Itoa(i))
	}
	p := maintain.PurgeOptions{Secrets: true, Mask: true}
	got := must(maintain.Purge(t.Context(), repo, p))(t)
	if len(got.Remaining) > 0 || got.Objects == 0 || len(got.Masked) != 2*len(planted) {
		t.Errorf("%d left, %d objects, edits on %d branches", len(got.Remaining), got.Objects, len(got.Masked))
	}
	soundStore(t, repo, dir, planted)
	for name, was := range before {
		if now := sent(t, repo, name); now != secrets.Mask(was) && strings.Count(now, " | ") != strings.Count(was, " | ") {
			t.Errorf("%s was\n%s\nand is\n%s", name, secrets.Mask(was), now)
		}
	}
	if again := must(maintain.Purge(t.Context(), repo, p))(t); again.Objects > 0 || len(again.Masked) > 0 {
		t.Errorf("masked again: %+v", again)
	}
}

// TestPurgedSecretsAreInNoFile takes the blocks that have a secret away whole.
func TestPurgedSecretsAreInNoFile(t *testing.T) {
	all := secretstest.Plant(32)
	planted := []secretstest.Planted{all[0], all[30]}
	repo, dir := leakyStore(t, planted)
	leaks := map[objects.ID]bool{}
	for _, l := range scan(t, repo, maintain.ScanOptions{}) {
		if l.Purgeable() {
			leaks[l.Object] = true
		}
	}
	got := must(maintain.Purge(t.Context(), repo, maintain.PurgeOptions{Secrets: true}))(t)
	if len(got.Commits) == 0 || len(got.Others) == 0 || len(leaks) == 0 || got.Objects < len(leaks) {
		t.Errorf("%d commits, %d other objects, %d purged of %d", len(got.Commits), len(got.Others), got.Objects, len(leaks))
	}
	soundStore(t, repo, dir, planted)
	must(repo.Compile(t.Context(), "b0", tract.CompileOptions{}))(t)
}

// TestMaskLeavesContentOfAnOpenToolLoop: the same sealed words on a branch whose loop is over
// are the same object, and stay too until the other loop is over. Of a rule that was not
// asked for nothing is masked, and what is never purged is not tried.
func TestMaskLeavesContentOfAnOpenToolLoop(t *testing.T) {
	all := secretstest.Plant(33)
	key, other := all[15].Secret, all[2].Secret
	repo := open(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
	b := repo.Branch("main")
	must(b.Ask(t.Context(), says(think("they gave "+key), call("c1")), "mine: "+key+" and "+other, tract.AskOptions{}))(t)
	must(repo.Branch("kept").AppendResponse(t.Context(), &llm.Response{Head: llm.Head{ID: "r", Finish: "error: " + key}, Blocks: []content.Block{content.Assistant("Hm.")}}, tract.AppendOptions{}))(t)
	must(b.Fork(t.Context(), "over", "main"))(t)
	must(repo.Branch("over").Append(t.Context(), []content.Block{result("c1")}, tract.AppendOptions{}))(t)
	must(repo.Branch("over").AppendUser(t.Context(), "and now?"))(t)
	mask := func() *maintain.PurgeResult {
		t.Helper()
		done := must(maintain.Purge(t.Context(), repo, maintain.PurgeOptions{Secrets: true, Mask: true, Rules: []string{"github"}}))(t)
		if left := scan(t, repo, maintain.ScanOptions{Rules: []string{"github"}}); len(left) != len(done.Remaining) {
			t.Errorf("%+v are left, and it tells of %+v", left, done.Remaining)
		}
		return done
	}
	done := mask()
	if len(done.Remaining) != 2 || len(done.Commits) != 1 || len(done.Masked["main"]) != 1 || len(done.Masked["over"]) != 1 {
		t.Errorf("%+v", done)
	}
	if err := repo.Branch("nowhere").Describe(t.Context(), "about "+other); err != nil {
		t.Fatal(err)
	}
	if list := scan(t, repo, maintain.ScanOptions{}); list[len(list)-1].Where != "description" {
		t.Errorf("the last one found is %+v", list[len(list)-1])
	}
	places := []string{}
	for _, l := range done.Remaining {
		places = append(places, l.Where)
		if l.Where == "content" && !l.Open || l.Purgeable() != (l.Where == "content") {
			t.Errorf("left: %+v", l)
		}
	}
	if slices.Sort(places); !slices.Equal(places, []string{"content", "origin"}) {
		t.Errorf("left in %v", places)
	}
	if got := sent(t, repo, "over"); !strings.HasPrefix(got, "user:mine: "+secrets.Mask(key)+" and "+other+" | ") {
		t.Errorf("the prompt begins %.200s", got)
	}
	must(b.Append(t.Context(), []content.Block{result("c1")}, tract.AppendOptions{}))(t)
	must(b.AppendUser(t.Context(), "and here?"))(t)
	if done = mask(); len(done.Remaining) != 1 || done.Remaining[0].Where != "origin" {
		t.Errorf("when both loops are over: %+v", done)
	}
}

// TestScanSkipsPurgedContent: contents, labels, tools, descriptions.
func TestScanSkipsPurgedContent(t *testing.T) {
	repo, dir := leakyStore(t, secretstest.Plant(34)[:1])
	p := maintain.PurgeOptions{}
	kinds := map[objects.Kind]bool{}
	for _, kind := range []objects.Kind{objects.KindContent, objects.KindLabel, objects.KindTools} {
		ids := must(repo.Store().Find(t.Context(), kind, "", 0))(t)
		kinds[kind] = len(ids) > 0
		for _, id := range ids {
			p.Revs = append(p.Revs, id.String())
		}
	}
	must(maintain.Purge(t.Context(), repo, p))(t)
	if list := scan(t, repo, maintain.ScanOptions{}); len(list) > 0 || len(kinds) != 3 {
		t.Errorf("%+v", list)
	}
	soundStore(t, repo, dir, nil)
}
