package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

//go:embed schema.sql
var schema1 string

// migrations lead from one version of the schema to the next; the first one makes it.
var migrations = []string{schema1}

// migrationLock is the key of the advisory lock that a migration holds.
const migrationLock = 0x7472616374 // "tract"

// prepare finds the repo of a name, and makes it and the schema if create says so.
func (s *store) prepare(ctx context.Context, repo string, create bool) error {
	version := 0
	err := s.rows(ctx, func(row pgx.Rows) error { return row.Scan(&version) }, `select version from tract_schema`)
	switch {
	case hasCode(err, codeNoDatabase):
		return fmt.Errorf("open store %s: the database: %w", s.name, objects.ErrNotFound)
	case err != nil && !hasCode(err, codeNoTable):
		return fmt.Errorf("open %w", err)
	case version > len(migrations):
		return fmt.Errorf("open store %s: the schema has version %d and this program knows %d: %w", s.name, version, len(migrations), objects.ErrFormat)
	case version < len(migrations) && create:
		if err := s.migrate(ctx); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
	case err != nil:
		return fmt.Errorf("open store %s: the tables of tract: %w", s.name, objects.ErrNotFound)
	case version < len(migrations):
		return fmt.Errorf("open store %s: the schema has version %d and this program needs %d, to which tract init brings it: %w",
			s.name, version, len(migrations), objects.ErrFormat)
	}
	if err := s.findRepo(ctx, repo); err != nil || s.repo != 0 {
		return err
	}
	if !create {
		return fmt.Errorf("open store %s: repo %q: %w", s.name, repo, objects.ErrNotFound)
	}
	if err := s.exec(ctx, `insert into tract_repo (name) values ($1) on conflict do nothing`, repo); err != nil {
		return err
	}
	return s.findRepo(ctx, repo)
}

func (s *store) findRepo(ctx context.Context, repo string) error {
	return s.rows(ctx, func(row pgx.Rows) error {
		var purges uint64
		err := row.Scan(&s.repo, &purges)
		s.learnPurges(purges)
		return err
	}, `select id, purges from tract_repo where name = $1`, repo)
}

// migrate brings the schema to the newest version, in one transaction. Of several processes
// that do so at once, one does and the others find it done.
func (s *store) migrate(ctx context.Context) error {
	return s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `create table if not exists tract_schema (version int not null)`); err != nil {
			return err
		}
		version := 0
		if err := tx.QueryRow(ctx, `select coalesce(max(version), 0) from tract_schema`).Scan(&version); err != nil {
			return err
		}
		if version >= len(migrations) {
			return nil
		}
		for _, sql := range migrations[version:] {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `delete from tract_schema`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into tract_schema (version) values ($1)`, len(migrations))
		return err
	})
}
