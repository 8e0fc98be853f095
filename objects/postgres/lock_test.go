//go:build postgres

package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// lockRepo locks the repo of a store, as gc and purge do, until the function is called.
func lockRepo(t *testing.T, s objects.Store) (unlock func()) {
	t.Helper()
	in, _ := objects.As[*store](s)
	tx, err := in.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := in.lockRepo(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Error(err)
		}
	}
}

// TestLockOfOneRepo writes to a repo while another one of the same database is locked. Both writes to this one
// wait: objects without a ref, and the move of a ref.
func TestLockOfOneRepo(t *testing.T) {
	locked, free := openURL(t, freshURL(t)), openURL(t, freshURL(t))
	grow(t, locked, "refs/heads/moved", "moved", 2, 1)
	unlock := lockRepo(t, locked)
	defer unlock()
	grow(t, free, "refs/heads/main", "free", 3, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	c, content := counting(objects.ID{}, 1, "locked")
	if err := locked.Apply(ctx, objects.Batch{Put: []objects.Object{c, content}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write to the locked repo: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := increment(ctx, locked, "refs/heads/moved", "me"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a move of a ref of the locked repo: %v", err)
	}
	unlock()
	grow(t, locked, "refs/heads/main", "locked", 3, 1)
	wantSound(t, locked)
}

// waitForLocks waits until so many statements wait for the lock of the repo of a store.
func waitForLocks(t *testing.T, s objects.Store, n int) {
	t.Helper()
	in, _ := objects.As[*store](s)
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		have := 0
		err := in.pool.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory' and not granted and classid = $1 and objid = $2`,
			uint32(lockClass), uint32(in.lockKey())).Scan(&have)
		if err != nil {
			t.Fatal(err)
		}
		if have == n {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d statements wait for the lock, want %d", have, n)
		}
	}
}

// TestPurgeRemovesCopiesOfAWaitingWrite has a write with a copy of an object begin before the purge of the
// object is committed, and go on after it. A write that is repeatable read does not see the tombstone.
func TestPurgeRemovesCopiesOfAWaitingWrite(t *testing.T) {
	for _, isolation := range []string{"read%20committed", "repeatable%20read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			url := freshURL(t)
			one, two := openURL(t, url), openURL(t, url+"&default_transaction_isolation="+isolation)
			_, contents := grow(t, one, "refs/heads/main", "main", 3, 3)
			unlock := lockRepo(t, one)
			defer unlock()
			done := make(chan error, 2)
			go func() {
				_, err := objects.Purge(t.Context(), one, []objects.Tombstone{{ID: contents[1].ID, Time: time.Now()}}, nil)
				done <- err
			}()
			waitForLocks(t, one, 1)
			go func() { done <- two.Apply(t.Context(), objects.Batch{Put: contents[1:2], Copies: true}) }()
			waitForLocks(t, one, 2)
			unlock()
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			if _, err := objects.Read(t.Context(), two, contents[1].ID); !errors.Is(err, objects.ErrPurged) {
				t.Errorf("the purged content: %v", err)
			}
			wantSound(t, one)
		})
	}
}
