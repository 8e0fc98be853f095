package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// schemaVersion is the version of the schema that this program knows.
const schemaVersion = 2

//go:embed schema.sql
var schema string

// schemaLock is the key of the advisory lock under which the schema is made.
const schemaLock = 0x7472616374 // "tract"

// prepare finds the repo of a name, and makes it and the schema if create says so.
func (s *store) prepare(ctx context.Context, repo string, create bool) error {
	version := 0
	err := s.query(ctx, func(row pgx.CollectableRow) error { return row.Scan(&version) }, `select version from tract_schema`)
	switch {
	case hasCode(err, codeNoDatabase):
		return fmt.Errorf("open store %s: the database: %w", s.name, objects.ErrNotFound)
	case hasCode(err, codeNoTable) && create:
		if err := s.makeSchema(ctx); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
	case hasCode(err, codeNoTable):
		return fmt.Errorf("open store %s: the tables of tract: %w", s.name, objects.ErrNotFound)
	case err != nil:
		return fmt.Errorf("open %w", err)
	case version != schemaVersion:
		hint := "use a newer tract"
		if version < schemaVersion {
			hint = "copy the store with the tract that made it: tract backup --to FOLDER, and from there into a new database"
		}
		return fmt.Errorf("open store %s: the schema has version %d and this program knows %d; %s: %w", s.name, version, schemaVersion, hint, objects.ErrFormat)
	}
	for ; ; create = false {
		err := s.query(ctx, func(row pgx.CollectableRow) error {
			var purges uint64
			err := row.Scan(&s.repo, &purges)
			s.learnPurges(purges)
			return err
		}, `select id, purges from tract_repo where name = $1`, repo)
		switch {
		case err != nil || s.repo != 0:
			return err
		case !create:
			return fmt.Errorf("open store %s: repo %q: %w", s.name, repo, objects.ErrNotFound)
		}
		if err := s.exec(ctx, `insert into tract_repo (name) values ($1) on conflict do nothing`, repo); err != nil {
			return err
		}
	}
}

// makeSchema makes the tables, in one transaction. Of several processes that do so at once, one
// does and the others find it done.
func (s *store) makeSchema(ctx context.Context) error {
	return s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
			return err
		}
		made := false
		if err := tx.QueryRow(ctx, `select to_regclass('tract_schema') is not null`).Scan(&made); err != nil || made {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
}
