//go:build postgres

package postgres

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestPositionSealedDuringAWait moves a ref while its row is locked. Meanwhile another writer takes
// the same position with a commit, which is sealed: the move must find another position, although its
// statement began before.
func TestPositionSealedDuringAWait(t *testing.T) {
	url := freshURL(t)
	main, fork := openURL(t, url), openURL(t, url)
	in, ok := objects.As[*store](main)
	if !ok {
		t.Fatal("another store")
	}
	grow(t, main, "refs/heads/main", "main", segmentSize-1, segmentSize-1)
	tip, err := objects.ReadRef(t.Context(), main, "refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	if err := main.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: tip.Target}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.GetRefs(t.Context(), "refs/heads/fork"); err != nil { // so that it knows the position
		t.Fatal(err)
	}
	tx, err := in.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from tract_ref where repo = $1 and name = 'refs/heads/fork' for update`, in.repo); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- increment(t.Context(), fork, "refs/heads/fork", "fork") }()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		err := in.pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like 'with moved%')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := increment(t.Context(), main, "refs/heads/main", "main"); err != nil {
		t.Fatal(err)
	}
	var line int64
	if err := in.pool.QueryRow(t.Context(), `select line from tract_ref where repo = $1 and name = 'refs/heads/main'`, in.repo).Scan(&line); err != nil {
		t.Fatal(err)
	}
	if err := in.seal(t.Context(), line, segmentSize); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantSound(t, main)
}

// TestRefThatWronglyOwnsALine has the row of a ref say that it owns a line which goes on after it. The audit finds
// it, and an append gets a line of its own.
func TestRefThatWronglyOwnsALine(t *testing.T) {
	url := freshURL(t)
	s := openURL(t, url)
	commits, _ := grow(t, s, "refs/heads/main", "main", 3, 1)
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: commits[1].ID}}}); err != nil {
		t.Fatal(err)
	}
	in, _ := objects.As[*store](s)
	sql(t, url, fmt.Sprintf("update tract_ref set owns_line = true where repo = %d and name = 'refs/heads/fork'", in.repo))
	damages := 0
	m, _ := objects.As[objects.Maintainer](s)
	if err := m.Audit(t.Context(), objects.Audit{Damage: func(objects.Damage) error { damages++; return nil }}); err != nil || damages != 1 {
		t.Errorf("the audit finds %d damages, %v; want 1", damages, err)
	}
	grow(t, openURL(t, url), "refs/heads/fork", "fork", 2, 1)
	if lines := rowsOf(t, s, "tract_line", ""); lines != 2 {
		t.Errorf("%d lines, want one for each branch", lines)
	}
	wantSound(t, s)
}

// TestOwnerPutsACommitAgain has a fork write a commit, and then the ref that owns the line of its parent the same one: it is stored once.
func TestOwnerPutsACommitAgain(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, _ := grow(t, s, "refs/heads/main", "main", 3, 1)
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: commits[2].ID}}}); err != nil {
		t.Fatal(err)
	}
	grow(t, s, "refs/heads/fork", "both", 2, 1)
	grow(t, s, "refs/heads/main", "both", 2, 1)
	wantSound(t, s)
}

// TestLinesOfRandomHistories has two processes append to branches, fork, reset, remove and create them, put commits without a ref, and
// seal, all from any commit: no position is taken twice.
func TestLinesOfRandomHistories(t *testing.T) {
	url := freshURL(t)
	stores := []objects.Store{openURL(t, url), openURL(t, url)}
	r := rand.New(rand.NewPCG(1, 2))
	var commits []objects.ID
	for step := range 200 {
		s := stores[r.IntN(2)]
		names := []string{fmt.Sprint("refs/heads/", r.IntN(4)), fmt.Sprint("refs/heads/", 4+r.IntN(2))}[:1+r.IntN(2)]
		var b objects.Batch
		var tip objects.ID
		for _, name := range names {
			ref, err := objects.ReadRef(t.Context(), s, name)
			if err != nil {
				t.Fatal(err)
			}
			tip = ref.Target
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: tip})
		}
		if len(commits) > 0 && r.IntN(4) == 0 {
			tip = commits[r.IntN(len(commits))]
		}
		kind := r.IntN(10)
		for i := range []int{1, 2, 0, 1, 3, 1, 1, 1, 1, 300}[kind] {
			c, content := counting(tip, i, fmt.Sprint("step ", step))
			b.Put, commits, tip = append(b.Put, c, content), append(commits, c.ID), c.ID
		}
		for i := range b.Refs {
			if b.Refs[i].New = tip; kind == 2 && r.IntN(8) == 0 {
				b.Refs[i].New = objects.ID{}
			}
		}
		if kind == 4 {
			b.Refs = nil
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if in, _ := objects.As[*store](s); step%20 == 19 {
			if err := in.sealLongTails(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rowsOf(t, stores[0], "tract_seg", "") == 0 {
		t.Error("nothing was sealed")
	}
	t.Logf("%d commits in %d lines", len(commits), rowsOf(t, stores[0], "tract_line", ""))
	wantSound(t, stores[1])
}
