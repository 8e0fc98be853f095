package tract_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
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

// TestPurgedContentStaysPurgedInCopies checks that cherry-picks, squashes and imports of purged
// content neither change commits nor bring the content back. Only an append of the same content
// does.
func TestPurgedContentStaysPurgedInCopies(t *testing.T) {
	repo, dir := onDisk(t)
	ctx := t.Context()
	main := repo.Branch("main")
	id := must(main.Append(ctx, []content.Block{content.User("hunter2")}, tract.AppendOptions{}))(t)[0]
	was := must(repo.Show(ctx, id.String()))(t)
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{id.String()}}))(t)
	must(repo.Branch("copy").Append(ctx, []content.Block{content.User("first")}, tract.AppendOptions{}))(t)
	ids := must(repo.Branch("copy").CherryPick(ctx, []string{id.String()}))(t)
	if c := must(repo.Show(ctx, ids[0].String()))(t); c.ContentID != was.ContentID || c.Tombstone == nil || c.Size != was.Size || c.Role != was.Role {
		t.Errorf("the copy is %+v", c)
	}
	must(repo.Import(ctx, func(yield func(tract.ImportedMessage, error) bool) { yield(one("brought", "1", "hunter2"), nil) }, tract.ImportOptions{}))(t)
	if c := must(repo.Show(ctx, "brought"))(t); c.ContentID != was.ContentID || c.Tombstone == nil {
		t.Errorf("what was imported is %+v", c)
	}
	wantNoWord(t, dir, 1, "hunter2")
	if _, err := commit.ReadContent(ctx, repo.Store(), was.ContentID); !errors.Is(err, objects.ErrPurged) {
		t.Errorf("the content: %v", err)
	}
	edit := must(main.Edit(ctx, id.String(), "changed", tract.EditOptions{}))(t)
	if got := sent(t, repo, "main"); got != "user:changed" {
		t.Errorf("edited: %s", got)
	}
	if _, err := main.Edit(ctx, id.String(), "", tract.EditOptions{Source: id.String()}); !errors.Is(err, objects.ErrPurged) {
		t.Errorf("the first words, restored: %v", err)
	}
	must(repo.Branch("again").Append(ctx, []content.Block{content.User("hunter2")}, tract.AppendOptions{}))(t)
	if got := sent(t, repo, id.String()); got != "user:hunter2" {
		t.Errorf("said anew: %s", got)
	}
	_ = edit
}

// TestPurgeInHistoriesWithMerges purges content of random histories with merges, cherry-picks and
// summaries: every engine gives the same result, and every request is valid.
func TestPurgeInHistoriesWithMerges(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		dir := filepath.Join(t.TempDir(), "store")
		w := newWorld(t, uint64(100+seed), "mem:", dir)
		for range 60 {
			w.step()
			if w.r.IntN(4) == 0 {
				at := w.block(pick(w, w.branches))
				w.all("purge", func(ctx context.Context, repo *tract.Repo) error {
					_, err := maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: []string{at}})
					return err
				})
				clear(w.seen) // prompts of the past are others now
			}
			w.look()
		}
		if h := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t); !h.OK() || h.Purged == 0 {
			t.Errorf("seed %d: %+v", seed, h)
		}
		if w.did["purge"] == 0 {
			t.Error("nothing was purged")
		}
	}
}
