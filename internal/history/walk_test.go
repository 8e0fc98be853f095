package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestWalksYieldEveryCommitOnce walks over histories that diverge and are merged, from
// branches, tags and a rescued response: every commit comes once, and of one line before
// its parents.
func TestWalksYieldEveryCommitOnce(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(1, seed))
		store := objects.Memory()
		var all []*commit.Commit
		for i := range 60 {
			d := commit.Draft{Block: content.User(fmt.Sprint(i)), Time: time.UnixMilli(r.Int64N(1000))}
			var parent *commit.Commit
			if i > 0 {
				parent = all[r.IntN(i)]
			}
			if second := all; i > 1 && r.IntN(8) == 0 && second[i-1] != parent {
				d = commit.Draft{Op: commit.Merge, SecondParent: second[i-1], Time: d.Time}
			}
			made, put, err := commit.Write(parent, d)
			if err == nil {
				err = store.Apply(t.Context(), objects.Batch{Put: put})
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, made...)
		}
		var refs []objects.RefUpdate
		for i, c := range all {
			name := []string{"refs/heads/", "refs/tags/", "refs/rescued/main/"}[i%3]
			refs = append(refs, objects.RefUpdate{Name: fmt.Sprint(name, i), New: c.ID}, objects.RefUpdate{Name: fmt.Sprint("refs/tags/again", i), New: c.ID})
		}
		if err := store.Apply(t.Context(), objects.Batch{Refs: refs}); err != nil {
			t.Fatal(err)
		}
		tips, err := Tips(t.Context(), store)
		if err != nil || len(tips) != len(all) {
			t.Fatalf("seed %d: %d tips of %d commits, %v", seed, len(tips), len(all), err)
		}
		seen := map[objects.ID]bool{all[0].ID: true}
		for c, err := range commit.WalkAll(t.Context(), store, tips, seen) {
			if err != nil || c.ID == all[0].ID {
				t.Fatalf("seed %d: a commit that was seen comes again, or %v", seed, err)
			}
		}
		if len(seen) != len(all) {
			t.Errorf("seed %d: %d of %d commits were seen", seed, len(seen), len(all))
		}
		once := map[objects.ID]bool{}
		for c, err := range commit.NewestFirst(t.Context(), store, []objects.ID{all[59].ID, all[58].ID}) {
			if err != nil || once[c.ID] {
				t.Fatalf("seed %d: commit %v comes twice, or %v", seed, c, err)
			}
			once[c.ID] = true
		}
		want := map[objects.ID]bool{}
		for c, err := range commit.WalkAll(t.Context(), store, []objects.ID{all[59].ID, all[58].ID}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			want[c.ID] = true
		}
		if len(once) != len(want) {
			t.Errorf("seed %d: one walk has %d commits, the other %d", seed, len(once), len(want))
		}
	}
}

// TestTurns numbers the turns of two branches that share a beginning.
func TestTurns(t *testing.T) {
	store := objects.Memory()
	drafts := []commit.Draft{{Block: content.System("s")}, {Block: content.User("q")}, {Block: content.Assistant("a")}, {Block: content.User("r")}}
	commits, put, err := commit.Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	fork, more, err := commit.Write(commits[2], commit.Draft{Block: content.User("t")})
	if err == nil {
		err = store.Apply(t.Context(), objects.Batch{Put: append(put, more...)})
	}
	if err != nil {
		t.Fatal(err)
	}
	turns, err := TurnNumbers(t.Context(), store, []objects.ID{commits[3].ID, fork[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 1, 2} {
		if got := turns[commits[i].ID]; got != want {
			t.Errorf("commit %d is of turn %d, want %d", i, got, want)
		}
	}
	if turns[fork[0].ID] != 2 {
		t.Errorf("the fork is at turn %d", turns[fork[0].ID])
	}
}

// TestMissingCommitEndsAWalkWhereItIs walks over a history that lacks a commit: the commits after it
// come before the error, although the walk reads many commits ahead.
func TestMissingCommitEndsAWalkWhereItIs(t *testing.T) {
	store := objects.Memory()
	var drafts []commit.Draft
	for i := range 40 {
		drafts = append(drafts, commit.Draft{Block: content.User(fmt.Sprint(i)), Time: time.UnixMilli(int64(i))})
	}
	commits, put, err := commit.Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	put = slices.DeleteFunc(put, func(o objects.Object) bool { return o.ID == commits[20].ID })
	if err := store.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for _, err := range commit.NewestFirst(t.Context(), store, []objects.ID{commits[39].ID}) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 19 || last == nil {
		t.Errorf("%d commits and %v, want 19 and an error", n, last)
	}
}
