package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Versions of the schema: the one that this program knows, and the oldest that it upgrades.
const (
	schemaVersion = 5
	oldestSchema  = 4
)

//go:embed schema.sql
var schemaSQL string

// upgradeSQL upgrades version 4, which had a function that each insert of a commit called. A ref that owns no
// line begins one with its next commit.
const upgradeSQL = `
drop function if exists tract_check_position;
alter table tract_ref add owns_line bool not null default false;
update tract_schema set version = 5;`

// schemaLock is the key of the advisory lock under which the schema is made.
const schemaLock = 0x7472616374 // "tract"

// findOrCreateRepo finds the repo of a name. create: it makes what is not there and upgrades the schema.
func (s *store) findOrCreateRepo(ctx context.Context, repo string, create bool) error {
	version := 0
	err := s.query(ctx, func(row pgx.CollectableRow) error { return row.Scan(&version) }, `select version from tract_schema`)
	switch noTable := hasCode(err, codeNoTable); {
	case hasCode(err, codeNoDatabase):
		return fmt.Errorf("open store %s: the database: %w", s.name, objects.ErrNotFound)
	case err != nil && !noTable:
		return fmt.Errorf("open %w", err)
	case create && (noTable || version >= oldestSchema && version < schemaVersion):
		if err := s.makeOrUpgradeSchema(ctx); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
	case noTable:
		return fmt.Errorf("open store %s: the tables of tract: %w", s.name, objects.ErrNotFound)
	case version != schemaVersion:
		hint := "use a newer tract"
		if version < schemaVersion {
			hint = fmt.Sprintf("tract init, run by the owner of the tables, upgrades version %d and later; copy an older store with the tract that made it: tract backup --to FOLDER", oldestSchema)
		}
		return fmt.Errorf("open store %s: the schema has version %d and this program knows %d; %s: %w", s.name, version, schemaVersion, hint, objects.ErrFormat)
	}
	for ; ; create = false {
		err := s.query(ctx, func(row pgx.CollectableRow) error {
			var purges uint64
			err := row.Scan(&s.repo, &purges)
			s.setPurges(purges)
			return err
		}, `select id, purges from tract_repo where name = $1`, repo)
		switch {
		case err != nil || s.repo != 0:
			return err
		case !create:
			return fmt.Errorf("open store %s: repo %q: %w", s.name, repo, objects.ErrNotFound)
		}
		if err := s.query(ctx, nil, `insert into tract_repo (name) values ($1) on conflict do nothing`, repo); err != nil {
			return err
		}
	}
}

// makeOrUpgradeSchema makes or upgrades the schema, in one transaction. Of several processes that do so at
// once, one does and the others find it done.
func (s *store) makeOrUpgradeSchema(ctx context.Context) error {
	return s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
			return err
		}
		made, version := false, 0
		if err := tx.QueryRow(ctx, `select to_regclass('tract_schema') is not null`).Scan(&made); err != nil {
			return err
		}
		if !made {
			_, err := tx.Exec(ctx, schemaSQL)
			return err
		}
		if err := tx.QueryRow(ctx, `select version from tract_schema`).Scan(&version); err != nil || version < oldestSchema || version >= schemaVersion {
			return err
		}
		_, err := tx.Exec(ctx, upgradeSQL)
		return err
	})
}
