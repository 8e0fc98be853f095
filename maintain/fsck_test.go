package maintain_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

// library is a store in a folder with two branches, closed.
func library(t *testing.T) (dir string, tips map[string]objects.ID) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	main := repo.Branch("main")
	for i := range 40 {
		if _, err := main.AppendUser(t.Context(), fmt.Sprintf("Question %d? %s", i, strings.Repeat("why ", i*7))); err != nil {
			t.Fatal(err)
		}
		if _, err := main.Append(t.Context(), []content.Block{content.Assistant(fmt.Sprintf("Answer %d.", i))}, tract.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := main.Fork(t.Context(), "side", "HEAD~10"); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Branch("side").AppendUser(t.Context(), "On the side."); err != nil {
		t.Fatal(err)
	}
	tips = map[string]objects.ID{}
	for _, name := range []string{"main", "side"} {
		if tips[name], err = repo.Branch(name).Tip(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := repo.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, tips
}

// spoil replaces a text in the files of a store by another of the same length.
func spoil(t *testing.T, dir, old, other string) {
	t.Helper()
	found := false
	for _, name := range []string{"tract.db", "tract.db-journal"} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(old)) {
			continue
		}
		found = true
		if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(old), []byte(other)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("%q is in no file", old)
	}
}

// folded brings what is in the journal of a store into its file, as a large commit does.
func folded(t *testing.T, dir string) string {
	t.Helper()
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Branch("large").AppendUser(t.Context(), strings.Repeat("large ", 400_000))
	if err := errors.Join(err, repo.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFsckOfASoundStore(t *testing.T) {
	dir, _ := library(t)
	health, err := maintain.Fsck(t.Context(), dir, maintain.FsckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !health.OK() || len(health.Damages) > 0 || health.Commits != 81 || health.Refs != 2 || health.Unreachable != 0 {
		t.Errorf("%+v", health)
	}
}

func TestFsckExplainsALoss(t *testing.T) {
	dir, _ := library(t)
	dir = folded(t, dir)
	spoil(t, dir, "Answer 12.", "Answer 21.")
	health, err := maintain.Fsck(t.Context(), dir, maintain.FsckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, d := range health.Damages {
		said = append(said, fmt.Sprintf("%s (%v)", d.Means, d.Refs))
	}
	text := strings.Join(said, "\n")
	if health.OK() || !strings.Contains(text, "the content of commit ") || !strings.Contains(text, "[refs/heads/main refs/heads/side]") {
		t.Errorf("fsck says:\n%s", text)
	}
}

// TestFsckFindsInvalidCommits writes commits with a program that derives fields incorrectly: every
// hash is right, and the history is invalid.
func TestFsckFindsInvalidCommits(t *testing.T) {
	dir, tips := library(t)
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := objects.Read(t.Context(), repo.Store(), tips["main"])
	if err != nil {
		t.Fatal(err)
	}
	liar := objects.New(objects.KindCommit, []objects.ID{tips["main"]}, tip.Links, tip.Data)
	b := objects.Batch{Put: []objects.Object{liar}, Refs: []objects.RefUpdate{{Name: "refs/heads/liar", New: liar.ID}}}
	if err := errors.Join(repo.Store().Apply(t.Context(), b), repo.Close()); err != nil {
		t.Fatal(err)
	}
	health, err := maintain.Fsck(t.Context(), dir, maintain.FsckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(health.Damages) != 1 || health.Damages[0].ID != liar.ID || !strings.Contains(health.Damages[0].What, "depth") {
		t.Errorf("%+v", health.Damages)
	}
}

// TestFsckFindsInvalidMergesAndMissingContent stores the record of a merge under other parents, and
// a commit without its content.
func TestFsckFindsInvalidMergesAndMissingContent(t *testing.T) {
	dir, tips := library(t)
	ctx := t.Context()
	repo := must(tract.Open(ctx, dir, tract.OpenOptions{}))(t)
	before := must(repo.Resolve(ctx, "main~1"))(t)
	must(repo.Branch("main").Merge(ctx, "side", tract.MergeOptions{}))(t)
	merge := must(objects.Read(ctx, repo.Store(), must(repo.Branch("main").Tip(ctx))(t)))(t)
	liar := objects.New(objects.KindCommit, []objects.ID{before, tips["side"]}, merge.Links, merge.Data)
	commits, put, err := commit.Write(nil, commit.Draft{Block: content.User("Words that get lost.")})
	if err != nil {
		t.Fatal(err)
	}
	lost := commits[0].ContentID
	put = slices.DeleteFunc(put, func(o objects.Object) bool { return o.ID == lost })
	b := objects.Batch{Put: append(put, liar), Refs: []objects.RefUpdate{{Name: "refs/heads/liar", New: liar.ID}, {Name: "refs/heads/mute", New: commits[0].ID}}}
	if err := errors.Join(repo.Store().Apply(ctx, b), repo.Close()); err != nil {
		t.Fatal(err)
	}
	health := must(maintain.Fsck(ctx, dir, maintain.FsckOptions{}))(t)
	found := map[objects.ID]string{}
	for _, d := range health.Damages {
		found[d.ID] = d.What + ": " + d.Means
	}
	if len(found) != 2 || !strings.Contains(found[liar.ID], "depth") || !strings.Contains(found[lost], "missing: the content of commit "+commits[0].ID.Short()+" of mute") {
		t.Errorf("%v", found)
	}
}

func TestRecoverOfASoundStoreIsTheSameStore(t *testing.T) {
	dir, tips := library(t)
	to := filepath.Join(t.TempDir(), "new")
	before := fingerprint(t, dir)
	got, err := maintain.Recover(t.Context(), dir, to, maintain.RecoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost > 0 || got.Refs != 2 || len(got.Rescued) > 0 || len(got.Damages) > 0 {
		t.Errorf("%+v", got)
	}
	if after := fingerprint(t, dir); after != before {
		t.Errorf("the old store has changed: %s, was %s", after, before)
	}
	wantSame(t, dir, to)
	wantTips(t, to, tips)
	if _, err := maintain.Recover(t.Context(), dir, to, maintain.RecoverOptions{}); !errors.Is(err, objects.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
}

// fingerprint is the names, sizes and hashes of the files in a folder.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, e.Name(), len(b), objects.Hash(b).Short())
	}
	return all.String()
}

// wantSame checks that two stores have the same log, and that both are sound.
func wantSame(t *testing.T, a, b string) {
	t.Helper()
	var logs [2]string
	for i, dir := range []string{a, b} {
		health, err := maintain.Fsck(t.Context(), dir, maintain.FsckOptions{})
		if err != nil || !health.OK() {
			t.Fatalf("%s: %v, %+v", dir, err, health)
		}
		repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := repo.Store().Log(t.Context(), "", 0, 0)
		if err := errors.Join(err, repo.Close()); err != nil {
			t.Fatal(err)
		}
		logs[i] = fmt.Sprint(len(entries), entries[0].Hash, health.Objects)
	}
	if logs[0] != logs[1] {
		t.Errorf("the stores have different histories: %s, %s", logs[0], logs[1])
	}
}

func wantTips(t *testing.T, dir string, tips map[string]objects.ID) {
	t.Helper()
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	for name, want := range tips {
		n := 0
		for c, err := range repo.Log(t.Context(), name, tract.LogOptions{}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if n++; n == 1 && c.ID != want {
				t.Errorf("%s is at %s, want %s", name, c.ID.Short(), want.Short())
			}
		}
	}
}

func TestRecoverWithoutMetaPages(t *testing.T) {
	dir, tips := library(t)
	dir = folded(t, dir)
	path := filepath.Join(dir, "tract.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[:8192])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tract.Open(t.Context(), dir, tract.OpenOptions{}); !errors.Is(err, objects.ErrCorrupt) {
		t.Fatalf("a store without meta pages opens: %v", err)
	}
	if health := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t); health.OK() {
		t.Errorf("a store without meta pages is sound: %+v", health)
	}
	to := filepath.Join(t.TempDir(), "new")
	got, err := maintain.Recover(t.Context(), dir, to, maintain.RecoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost > 0 || got.Refs != 3 {
		t.Errorf("%+v", got)
	}
	wantTips(t, to, tips)
}

func TestRecoverMakesRescueRefsForLostTips(t *testing.T) {
	dir, tips := library(t)
	dir = folded(t, dir)
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := objects.Read(t.Context(), repo.Store(), tips["side"])
	if err := errors.Join(err, repo.Close()); err != nil {
		t.Fatal(err)
	}
	beside := string(tip.Links[len(tip.Links)-1][:]) // as they lie in the head of their pack
	spoil(t, dir, beside+string(tip.ID[:]), beside+strings.Repeat("x", len(tip.ID)))
	to := filepath.Join(t.TempDir(), "new")
	got, err := maintain.Recover(t.Context(), dir, to, maintain.RecoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := got.Rescued["refs/heads/side"]
	if got.Refs != 2 || !strings.HasPrefix(name, "refs/rescued/side/") {
		t.Fatalf("%+v", got)
	}
	wantTips(t, to, map[string]objects.ID{"main": tips["main"]})
	saved, err := tract.Open(t.Context(), to, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = saved.Close() }()
	if ref, err := objects.ReadRef(t.Context(), saved.Store(), name); err != nil || ref.Target != tip.Parents[0] {
		t.Errorf("%s is at %s, want what side was before: %s (%v)", name, ref.Target.Short(), tip.Parents[0].Short(), err)
	}
	if _, err := saved.Rescues(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBackupWhileOthersWrite(t *testing.T) {
	dir, _ := library(t)
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			if _, err := repo.Branch("busy").AppendUser(t.Context(), fmt.Sprint("Turn ", n, strings.Repeat(" and on", 2000))); err != nil {
				t.Error(err)
				done <- n
				return
			}
			n++
		}
	}()
	var copies []string
	for i := range 5 {
		to := filepath.Join(t.TempDir(), fmt.Sprint("copy", i))
		if _, err := maintain.Backup(t.Context(), repo, to, maintain.BackupOptions{}); err != nil {
			t.Error(err)
		}
		copies = append(copies, to)
	}
	close(stop)
	t.Logf("%d turns were committed during %d backups", <-done, len(copies))
	for _, to := range copies {
		copied, err := tract.Open(t.Context(), to, tract.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := copied.Branch("main").AppendUser(t.Context(), "A backup is a store."); err != nil {
			t.Error(err)
		}
		_ = copied.Close()
	}
	if _, err := maintain.Backup(t.Context(), repo, copies[0], maintain.BackupOptions{}); !errors.Is(err, objects.ErrExists) {
		t.Errorf("over another: %v", err)
	}
}

// TestLeftoversOfAKilledBackup plants the folders of two backups, one of them killed and
// one still running: the first is named and removed by the next backup of that name.
func TestLeftoversOfAKilledBackup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".tract")
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	to := filepath.Join(filepath.Dir(dir), "copy")
	killed, running := to+".new-1", to+".new-2"
	for _, folder := range []string{killed, running} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(folder, "unfinished.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if folder == running {
			if _, err := filelock.Lock(f, true, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, err := maintain.Leftovers(t.Context(), repo); err != nil || !slices.Equal(left, []string{killed}) {
		t.Errorf("leftovers: %v, %v; want %s", left, err, killed)
	}
	if _, err := maintain.Backup(t.Context(), repo, to, maintain.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Errorf("%s is there after the next backup", killed)
	}
	if _, err := os.Stat(running); err != nil {
		t.Errorf("a backup that is running: %v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "unfinished.lock")); err == nil {
		t.Error("the backup holds its lock file")
	}
}

// TestBackupOfADamagedStore copies a store that opens and reads, but of which one
// answer is not what was written: the copy gets no name, and nothing of it stays.
func TestBackupOfADamagedStore(t *testing.T) {
	dir, _ := library(t)
	dir = folded(t, dir)
	spoil(t, dir, "Answer 12.", "Answer 21.")
	repo, err := tract.Open(t.Context(), dir, tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	to := t.TempDir()
	if health, err := maintain.Backup(t.Context(), repo, filepath.Join(to, "copy"), maintain.BackupOptions{}); !errors.Is(err, objects.ErrCorrupt) || health != nil {
		t.Errorf("a backup of a damaged store says %+v, %v; want %v", health, err, objects.ErrCorrupt)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("a backup that failed leaves %v (%v)", left, err)
	}
}
