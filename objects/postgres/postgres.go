// Package postgres keeps stores in a PostgreSQL database. Importing it makes URLs such as
// "postgres://host/database?repo=NAME" known to objects.Open; nobody calls it directly.
//
//	import _ "github.com/tract-vcs/tract/objects/postgres"
//
//	store, err := objects.Open(ctx, "postgres://tract@db.example/agents?repo=support", objects.Options{Create: true})
//
// The URL is that of libpq and of pgx, which is the only outside module: sslmode,
// target_session_attrs, several hosts, pool_max_conns and the others mean what they mean
// there. The parameter repo names one of the stores in the database; without it the name
// is "tract".
//
// docs/postgres.md describes the tables, and how an append is one statement. Appends of one
// process that come while another one runs go together in the next transaction.
//
// What is promised beyond package objects:
//
//   - Every object is hashed when it is read. A row that is wrong is an
//     objects.CorruptError.
//   - Transient trouble, such as a lost connection, a restart or a failover of the server, a
//     deadlock or a serialization failure, is retried for as long as objects.Options.Wait
//     says (30 s), and is then an objects.ErrBusy. A write whose outcome is unknown is
//     looked up before it is repeated.
//   - One connection is enough, and so is a transaction pooler with
//     default_query_exec_mode=exec in the URL. No connection is held while a loop body runs.
//   - No error contains a password.
//
// Not promised: that the server forgets what was purged. The rows are gone when Purge
// returns, but their bytes stay in the files of the server until it has vacuumed them, in its
// write-ahead log and in its backups.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tract-vcs/tract/objects"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		objects.Register(scheme, func(ctx context.Context, rest string, o objects.Options) (objects.Store, error) {
			return open(ctx, scheme+":"+rest, o)
		})
	}
}

const (
	defaultRepo  = "tract"
	defaultConns = 16
	defaultWait  = 30 * time.Second
	openWait     = 5 * time.Second // for a server that does not answer, at most

	// statementTime is the longest time that one statement may take; a statement of
	// maintenance may take longer.
	statementTime = time.Minute
)

// store is one repo of a database.
type store struct {
	pool     *pgxpool.Pool
	name     string // for people: the URL without secrets
	repo     int64
	wait     time.Duration
	readOnly bool

	using   sync.RWMutex // held for reading while a connection is used
	closed  atomic.Bool
	closing chan struct{} // closed by Close

	caches
	seqs sequence

	updates objects.Updates
	queue   queue
	sealer  sealer
}

func open(ctx context.Context, address string, o objects.Options) (objects.Store, error) {
	config, repo, name, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", name, withoutURL(err))
	}
	s := &store{
		pool: pool, name: name, wait: min(cmp.Or(o.Wait, defaultWait), openWait), readOnly: o.ReadOnly || o.Damaged,
		closing: make(chan struct{}), seqs: sequence{turn: make(chan struct{}, 1)},
	}
	s.refs.limit, s.positions.limit, s.ends.limit, s.recent.limit = cacheSize, cacheSize, cacheSize, recentSize
	s.sealer.ctx, s.sealer.stop = context.WithCancel(context.Background())
	s.queue.slots = make(chan struct{}, min(maxWorkers, config.MaxConns))
	if err := s.findOrCreateRepo(ctx, repo, o.Create && !s.readOnly); err != nil {
		pool.Close()
		return nil, err
	}
	s.wait = cmp.Or(o.Wait, defaultWait)
	return objects.Trust(s, s.purges.Load), nil
}

// parseAddress splits a URL into what pgx is to know, the name of the repo, and a text for people
// that has no secrets.
func parseAddress(address string) (config *pgxpool.Config, repo, name string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", "", errors.New("open store postgres: the URL is invalid; want postgres://USER@HOST/DATABASE?repo=NAME")
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, "+", "%2B") // in these URLs it is no space
	query := u.Query()
	repo = cmp.Or(query.Get("repo"), defaultRepo)
	query.Del("repo")
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: url.Values{"repo": {repo}}.Encode()}
	if host := query.Get("host"); host != "" {
		shown.RawQuery = url.Values{"host": {host}, "repo": {repo}}.Encode()
	}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	name = strings.ReplaceAll(shown.String(), "%2F", "/")
	config, err = pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, "", "", fmt.Errorf("open store %s: %w", name, withoutURL(err))
	}
	if !query.Has("pool_max_conns") {
		config.MaxConns = defaultConns
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" && !query.Has("application_name") {
		config.ConnConfig.RuntimeParams["application_name"] = "tract"
	}
	if mode := config.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeCacheStatement {
		// Planning a lookup takes longer than running it, and a plan for other arrays is as good. But a plan
		// that was made while a table was small must not read all of it for ever; what has no index then seems to
		// take so long that the server would compile it. A pooler, which may not know these parameters, has another mode.
		maps.Copy(config.ConnConfig.RuntimeParams, map[string]string{"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"})
	}
	return config, repo, name, nil
}

// Close is objects.Store.
func (s *store) Close() error {
	defer s.updates.Stop()()
	if s.closed.Load() {
		return objects.ErrClosed
	}
	s.sealer.waitForSeals()
	s.using.Lock()
	defer s.using.Unlock()
	s.closed.Store(true)
	close(s.closing)
	s.pool.Close()
	return nil
}

// querier runs a query and calls scan for every row: the store, which repeats it after transient
// trouble, or direct.
type querier interface {
	query(ctx context.Context, scan func(pgx.CollectableRow) error, sql string, args ...any) error
}

// query is querier. After transient trouble it calls scan for all rows again.
func (s *store) query(ctx context.Context, scan func(pgx.CollectableRow) error, sql string, args ...any) error {
	return s.retry(ctx, statementTime, func(ctx context.Context) error { return direct{s.pool}.query(ctx, scan, sql, args...) })
}

// direct is the pool or a transaction.
type direct struct {
	db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

func (d direct) query(ctx context.Context, scan func(pgx.CollectableRow) error, sql string, args ...any) error {
	rows, _ := d.db.Query(ctx, sql, args...) // CollectRows returns the error
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, scan(row) })
	return err
}

// collect runs a query and returns what scan makes of each row.
func collect[T any](ctx context.Context, s *store, scan pgx.RowToFunc[T], sql string, args ...any) (list []T, err error) {
	err = s.retry(ctx, statementTime, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, sql, args...) // CollectRows returns the error
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, err
}

// inTx calls f in a transaction, again after transient trouble. The transaction must be one
// that may be repeated after it has been committed.
func (s *store) inTx(ctx context.Context, o pgx.TxOptions, limit time.Duration, f func(context.Context, pgx.Tx) error) error {
	return s.retry(ctx, limit, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.pool, o, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}
