package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// longTime is the longest time that one transaction of maintenance may take.
const longTime = 24 * time.Hour

// tables are those that a repo has rows in.
var tables = []string{"tract_repo", "tract_ref", "tract_log", "tract_line", "tract_tail", "tract_seg", "tract_blob", "tract_tombstone", "tract_index"}

// Copy is objects.Maintainer. A copy is an embedded store: see maintain.Backup.
func (s *store) Copy(context.Context, string, func(done, total int64)) error {
	return fmt.Errorf("copy store %s: %w", s.name, errors.ErrUnsupported)
}

// Leftovers is objects.Maintainer. There are no files.
func (s *store) Leftovers(context.Context) ([]string, error) { return nil, nil }

// Size is objects.Maintainer. The size is that of the tables, with their indexes and the rows of all repos.
func (s *store) Size(ctx context.Context) (path string, bytes int64, err error) {
	err = s.query(ctx, func(row pgx.CollectableRow) error { return row.Scan(&bytes) },
		`select coalesce(sum(pg_total_relation_size(t::regclass)), 0)::bigint from unnest($1::text[]) t`, tables)
	return s.name, bytes, err
}

// vacuum has the server reuse the space of deleted rows. A role that does not own the tables
// cannot, and the server does it later by itself.
func (s *store) vacuum(ctx context.Context) {
	_ = s.attempt(ctx, longTime, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `vacuum tract_tail, tract_seg, tract_blob, tract_index`)
		return err
	})
}

// lockClass is the first key of the advisory lock of a repo. A write holds it shared until it is committed,
// unless all it does is to move refs that have rows, and to insert the commits that they come to: it holds
// the locks of these rows.
const lockClass = 0x74726163 // "trac"

// lockRepo keeps others from writing to the repo, but not from reading, until the transaction ends.
// It must come first, so that the statements after it see all earlier writes.
func (s *store) lockRepo(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1::int, $2::int)`, lockClass, s.lockKey()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select from tract_ref where repo = $1 order by name for update`, s.repo)
	return err
}

// lockKey is the second key of the lock. Repos that have the same wait for one another.
func (s *store) lockKey() int32 { return int32(s.repo & math.MaxInt32) }

// Restore is objects.Maintainer.
func (s *store) Restore(ctx context.Context, list []objects.LogEntry) error {
	if s.readOnly {
		return fmt.Errorf("store %s: %w", s.name, objects.ErrReadOnly)
	}
	const most = 1000 // entries of a transaction
	for part := range slices.Chunk(list, most) {
		again := false
		err := s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) error {
			maybeCommitted := again
			again = true
			return s.restoreEntries(ctx, tx, part, maybeCommitted)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreEntries appends some entries. If maybeCommitted is set, it does nothing if the transaction before it
// was committed, which is unknown when the answer to COMMIT was lost.
func (s *store) restoreEntries(ctx context.Context, tx pgx.Tx, list []objects.LogEntry, maybeCommitted bool) error {
	if err := s.lockRepo(ctx, tx); err != nil {
		return err
	}
	q := direct{tx}
	if last := list[len(list)-1]; maybeCommitted {
		if done, err := s.hasEntry(ctx, q, refRows(last, nil)[0]); err != nil || done {
			return err
		}
	}
	var last uint64
	if err := tx.QueryRow(ctx, `select coalesce(max(seq), 0) from tract_log where repo = $1`, s.repo).Scan(&last); err != nil {
		return err
	}
	var names []string
	for i := range list {
		for _, u := range list[i].Refs {
			names = append(names, u.Name)
		}
	}
	states, err := s.states(ctx, q, names)
	if err != nil {
		return err
	}
	var w write
	for _, e := range list {
		err := e.Follows(last, func(name string) (target, newest objects.ID, err error) {
			return states[name].target, states[name].newest, nil
		})
		if err != nil {
			return err
		}
		for _, r := range refRows(e, states) {
			w.refs, states[r.name] = append(w.refs, r), r.state
		}
		last = e.Seq
	}
	var targets []objects.ID
	for _, r := range states {
		targets = append(targets, r.target)
	}
	positions := map[objects.ID]position{}
	err = s.find(ctx, q, objects.Unique(targets), true, func(id objects.ID, f found) error {
		if f.object.Kind == objects.KindCommit {
			positions[id] = f.at
		}
		return nil
	})
	if err != nil {
		return err
	}
	var statements []statement
	for i := range w.refs {
		r := &w.refs[i]
		r.state.at = positions[r.state.target] // where a ref comes to is known, and where it was between is not asked
		statements = s.appendMove(statements, batchRow[refRow]{&w, r}, 0)
	}
	if err := sendAndMarkLost(ctx, tx.Conn(), statements); err != nil || w.lost {
		return cmp.Or(err, errors.New("a ref has moved")) // although this transaction has the lock
	}
	_, err = tx.Exec(ctx, advanceSQL, int64(last))
	return err
}
