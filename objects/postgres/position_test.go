//go:build postgres

package postgres

import (
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
