package postgres

import (
	"context"
	"errors"
	"fmt"
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

// Size is objects.Maintainer. The size is that of the tables, with their indexes and the
// rows of all repos.
func (s *store) Size(ctx context.Context) (path string, bytes int64, err error) {
	err = s.rows(ctx, func(row pgx.Rows) error { return row.Scan(&bytes) },
		`select coalesce(sum(pg_total_relation_size(t::regclass)), 0)::bigint from unnest($1::text[]) t`, tables)
	return s.name, bytes, err
}

// vacuum has the server reuse the space of deleted rows. A role that does not own the tables
// cannot, and the server does it later by itself.
func (s *store) vacuum(ctx context.Context) {
	for _, table := range []string{"tract_tail", "tract_seg", "tract_blob", "tract_index"} {
		_ = s.attempt(ctx, longTime, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, "vacuum "+table)
			return err
		})
	}
}

// lockSQL keeps others from writing, but not from reading, until the transaction ends.
const lockSQL = `lock table tract_ref, tract_log, tract_line, tract_tail, tract_seg, tract_blob, tract_index in exclusive mode`

// Restore is objects.Maintainer.
func (s *store) Restore(ctx context.Context, list []objects.LogEntry) error {
	if s.readOnly {
		return fmt.Errorf("store %s: %w", s.name, objects.ErrReadOnly)
	}
	const most = 1000 // entries of a transaction
	for len(list) > 0 {
		part := list[:min(most, len(list))]
		err := s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) error { return s.restore(ctx, tx, part) })
		if err != nil {
			return err
		}
		list = list[len(part):]
	}
	return nil
}

// restore appends some entries.
func (s *store) restore(ctx context.Context, tx pgx.Tx, list []objects.LogEntry) error {
	if _, err := tx.Exec(ctx, `lock table tract_ref, tract_log in exclusive mode`); err != nil {
		return err
	}
	q := txQuerier{tx}
	var last int64
	if err := tx.QueryRow(ctx, `select coalesce(max(seq), 0) from tract_log where repo = $1`, s.repo).Scan(&last); err != nil {
		return err
	}
	var names []string
	for i := range list {
		for _, u := range list[i].Refs {
			names = append(names, u.Name)
		}
	}
	states := map[string]refState{}
	err := q.query(ctx, func(row pgx.Rows) error {
		name, r, err := scanRef(row)
		states[name] = r
		return err
	}, `select `+refColumns+` from tract_ref where repo = $1 and name = any($2::text[])`, s.repo, names)
	if err != nil {
		return err
	}
	var rows refArrays
	for _, e := range list {
		if rows, err = follow(rows, states, e, uint64(last)); err != nil {
			return err
		}
		last = int64(e.Seq)
	}
	var targets []objects.ID
	for _, r := range states {
		targets = append(targets, r.target)
	}
	positions, err := s.positionsOf(ctx, q, targets)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tract_log (repo, seq, name, record) select $1, * from unnest($2::bigint[], $3::text[], $4::bytea[])`, s.repo, rows.seq, rows.name, rows.records)
	var final refArrays
	var versions []int64
	for name, r := range states {
		r.at = positions[r.target]
		final.add(0, &refRow{name: name, state: r})
		versions = append(versions, int64(r.version))
	}
	batch.Queue(`insert into tract_ref (repo, name, target, line, gen, version, updated, seq, newest)
select $1, * from unnest($2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bytea[])
on conflict (repo, name) do update set target = excluded.target, line = excluded.line, gen = excluded.gen, version = excluded.version,
	updated = excluded.updated, seq = excluded.seq, newest = excluded.newest`,
		s.repo, final.name, final.target, final.line, final.gen, versions, final.updated, final.seq, final.newest)
	batch.Queue(advanceSQL, last)
	return tx.SendBatch(ctx, batch).Close()
}

// follow adds the rows of an entry, if it follows the last one and those of its refs.
func follow(rows refArrays, states map[string]refState, e objects.LogEntry, last uint64) (refArrays, error) {
	moves, err := objects.PendingUpdates(e.Refs, func(name string) (objects.ID, error) { return states[name].target, nil })
	if err != nil {
		return rows, err
	}
	follows := e.Seq > last && len(moves) == len(e.Refs) && len(moves) > 0
	for _, u := range moves {
		follows = follows && u.Prev == states[u.Name].newest
	}
	if !follows {
		return rows, &objects.CorruptError{Cause: fmt.Errorf("log entry %d does not follow entry %d and those of its refs", e.Seq, last)}
	}
	entry := objects.NewLogEntry(e.Seq, e.Note, moves)
	for _, r := range refRows(entry, entry.Record()) {
		rows.add(0, &r)
		r.state.version = states[r.name].version + 1
		states[r.name] = r.state
	}
	return rows, nil
}

// positionsOf returns where commits are, of those that exist.
func (s *store) positionsOf(ctx context.Context, q querier, ids []objects.ID) (map[objects.ID]position, error) {
	positions := map[objects.ID]position{}
	for part := range slices.Chunk(unique(ids), lookupIDs) {
		l, err := s.lookup(ctx, q, part, lookupAll)
		if err != nil {
			return nil, err
		}
		for id, f := range l.objects {
			if f.object.Kind == objects.KindCommit {
				positions[id] = f.at
			}
		}
		for at, ids := range l.hits {
			seg, _, err := s.segmentAt(ctx, q, at, false)
			if err != nil || seg == nil {
				return nil, err
			}
			for _, id := range ids {
				if _, gen := seg.find(id); gen >= 0 {
					positions[id] = position{at.line, gen}
				}
			}
		}
	}
	return positions, nil
}
