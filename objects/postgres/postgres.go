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
// Commits are keyed by line and generation, so that a walk is a range scan and a fork
// copies nothing. An append is one statement: it compares and swaps the ref, and only then
// inserts the commits, their content and the log entry. Appends of one process that come
// while another one runs go together in the next statement. When a line has 512 commits
// that are not sealed, 256 of them go into a segment in the background.
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
// Not promised: that the server forgets what was purged. The rows are gone when Erase
// returns, but their bytes stay in the files of the server until it has vacuumed them, in its
// write-ahead log and in its backups.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

	running sync.RWMutex // held for reading by every Update, so that Close waits for it
	using   sync.RWMutex // held for reading while a connection is used
	closed  atomic.Bool
	closing chan struct{} // closed by Close

	caches
	seqs sequence

	updating sync.Map // ref name -> *sync.Mutex: writers of one ref wait for one another
	queue    queue
	sealer   sealer
	moves    notifier
}

func open(ctx context.Context, address string, o objects.Options) (objects.Store, error) {
	config, repo, name, err := parse(address)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", name, plain(err))
	}
	s := &store{
		pool: pool, name: name, wait: cmp.Or(o.Wait, defaultWait), readOnly: o.ReadOnly || o.Damaged,
		closing: make(chan struct{}), seqs: sequence{turn: make(chan struct{}, 1)},
	}
	s.refs.limit, s.positions.limit, s.recent.limit = cacheSize, cacheSize, recentSize
	s.queue.slots = make(chan struct{}, min(maxWorkers, config.MaxConns))
	wait := s.wait
	s.wait = min(wait, openWait)
	if err := s.prepare(ctx, repo, o.Create && !s.readOnly); err != nil {
		pool.Close()
		return nil, err
	}
	s.wait = wait
	return objects.Trust(s, s.purges.Load), nil
}

// parse splits a URL into what pgx is to know, the name of the repo, and a text for people
// that has no secrets.
func parse(address string) (config *pgxpool.Config, repo, name string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", "", errors.New("open store postgres: the URL is invalid; want postgres://USER@HOST/DATABASE?repo=NAME")
	}
	query := u.Query()
	repo = cmp.Or(query.Get("repo"), defaultRepo)
	query.Del("repo")
	u.RawQuery = query.Encode()
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
		return nil, "", "", fmt.Errorf("open store %s: %w", name, plain(err))
	}
	if !query.Has("pool_max_conns") {
		config.MaxConns = defaultConns
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" && !query.Has("application_name") {
		config.ConnConfig.RuntimeParams["application_name"] = "tract"
	}
	if mode := config.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeCacheStatement {
		// Planning an append takes longer than running it, and a plan for other arrays is as
		// good. A pooler, which may not know this parameter, has another mode.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	}
	return config, repo, name, nil
}

// Close is objects.Store.
func (s *store) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed.Load() {
		return objects.ErrClosed
	}
	s.sealer.finish()
	s.using.Lock()
	defer s.using.Unlock()
	s.closed.Store(true)
	close(s.closing)
	s.pool.Close()
	return nil
}

// rows runs a query and calls scan for every row.
func (s *store) rows(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	return s.retry(ctx, statementTime, func(ctx context.Context) error { return s.rowsOnce(ctx, scan, sql, args...) })
}

func (s *store) rowsOnce(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, scan)
}

// collect runs a query and returns what scan makes of each row.
func collect[T any](ctx context.Context, s *store, scan func(pgx.Rows) (T, error), sql string, args ...any) (list []T, err error) {
	err = s.retry(ctx, statementTime, func(ctx context.Context) error {
		list = nil
		return s.rowsOnce(ctx, func(row pgx.Rows) error {
			v, err := scan(row)
			list = append(list, v)
			return err
		}, sql, args...)
	})
	return list, err
}

// number is a scan of one column.
func number(row pgx.Rows) (n int64, err error) {
	err = row.Scan(&n)
	return n, err
}

// eachRow calls scan for every row, and closes rows.
func eachRow(rows pgx.Rows, scan func(pgx.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// exec runs a statement that may be repeated.
func (s *store) exec(ctx context.Context, sql string, args ...any) error {
	return s.retry(ctx, statementTime, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, sql, args...)
		return err
	})
}

// inTx calls f in a transaction, again after transient trouble. The transaction must be one
// that may be repeated after it has been committed.
func (s *store) inTx(ctx context.Context, o pgx.TxOptions, limit time.Duration, f func(context.Context, pgx.Tx) error) error {
	return s.retry(ctx, limit, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.pool, o, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}
