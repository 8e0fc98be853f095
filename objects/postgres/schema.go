package postgres

import (
	"context"
	_ "embed"
	"errors"
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
	version, err := s.schemaVersion(ctx)
	missing := hasCode(err, codeNoTable, codeNoDatabase)
	switch {
	case err != nil && !missing:
		return fmt.Errorf("open %w", err)
	case version > len(migrations):
		return fmt.Errorf("open store %s: the schema has version %d and this program knows %d: %w", s.name, version, len(migrations), objects.ErrFormat)
	case version < len(migrations) && create && !hasCode(err, codeNoDatabase):
		if err := s.migrate(ctx); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
	case missing:
		return fmt.Errorf("open store %s: %w: %w", s.name, missingPart(err), objects.ErrNotFound)
	case version < len(migrations):
		return fmt.Errorf("open store %s: the schema has version %d and this program needs %d, to which tract init brings it: %w",
			s.name, version, len(migrations), objects.ErrFormat)
	}
	if err := s.findRepo(ctx, repo); err != nil || s.repo > 0 {
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

var (
	errNoDatabase = errors.New("the database")
	errNoSchema   = errors.New("the tables of tract")
)

// missingPart says what is not there.
func missingPart(err error) error {
	if hasCode(err, codeNoDatabase) {
		return errNoDatabase
	}
	return errNoSchema
}

func (s *store) findRepo(ctx context.Context, repo string) error {
	return s.rows(ctx, func(row pgx.Rows) error {
		var purges uint64
		err := row.Scan(&s.repo, &purges)
		s.learnPurges(purges)
		return err
	}, `select id, purges from tract_repo where name = $1`, repo)
}

// schemaVersion returns the version of the schema; 0 with an error: there is none.
func (s *store) schemaVersion(ctx context.Context) (version int, err error) {
	err = s.rows(ctx, func(row pgx.Rows) error { return row.Scan(&version) }, `select version from tract_schema`)
	return version, err
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
		err := tx.QueryRow(ctx, `select version from tract_schema`).Scan(&version)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		fresh := err != nil
		if version >= len(migrations) {
			return nil
		}
		for _, sql := range migrations[version:] {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if fresh {
			_, err = tx.Exec(ctx, `insert into tract_schema (version) values ($1)`, len(migrations))
		} else {
			_, err = tx.Exec(ctx, `update tract_schema set version = $1`, len(migrations))
		}
		return err
	})
}
