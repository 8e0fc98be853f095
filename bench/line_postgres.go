//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/postgrestest"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/postgres"
)

// postgres measures the PostgreSQL engine on a server that it starts, beside bare statements
// on the same server and beside the embedded engine.
func (b *bench) postgres(ctx context.Context) (err error) {
	server, err := postgrestest.Start(postgrestest.Binaries(), "fsync=on", "shared_buffers=256MB", "max_wal_size=4GB", "track_activity_query_size=65536")
	if errors.Is(err, postgrestest.ErrNotInstalled) {
		b.progress("  no PostgreSQL server is installed: left out")
		return nil
	}
	if err != nil {
		return err
	}
	defer server.Remove()
	p := &postgresBench{bench: b, server: server}
	for _, part := range []func(context.Context) error{p.oneWriter, p.manyWriters, p.history} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// postgresBench is one run of postgres.
type postgresBench struct {
	*bench
	server *postgrestest.Server
}

// appendTo returns a function that appends a commit with a message to a ref that nobody else
// moves.
func appendTo(store objects.Store, ref string) func(ctx context.Context, n int) error {
	var tip objects.ID
	return func(ctx context.Context, n int) error {
		said := objects.New(objects.KindContent, nil, nil, []byte(uniqueMessage(n)))
		var parents []objects.ID
		if !tip.IsZero() {
			parents = []objects.ID{tip}
		}
		c := objects.New(objects.KindCommit, parents, []objects.ID{said.ID}, fmt.Appendf(nil, "the header of commit %d, of 60 bytes in all or so, as headers have", n))
		err := store.Apply(ctx, objects.Batch{
			Put: []objects.Object{said, c}, Refs: []objects.RefUpdate{{Name: ref, Old: tip, New: c.ID}},
			Note: objects.Note{Time: time.Now(), Author: "bench", Command: "user"},
		})
		tip = c.ID
		return err
	}
}

// connect opens a connection for bare statements.
func (p *postgresBench) connect(ctx context.Context) (*pgx.Conn, error) {
	url, _, _ := strings.Cut(p.server.URL(""), "&repo=")
	return pgx.Connect(ctx, url)
}

// oneWriter measures an append beside a bare insert of as many bytes.
func (p *postgresBench) oneWriter(ctx context.Context) (err error) {
	store, err := objects.Open(ctx, p.server.URL("one"), objects.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `create table bare (id bigint generated always as identity primary key, data bytea)`); err != nil {
		return err
	}
	write, n := appendTo(store, "refs/heads/main"), 0
	const overhead = 400 // bytes of ids, the header and the log entry
	took, err := alternate(ctx, p.rounds, p.duration, timed(func(ctx context.Context) error {
		n++
		return write(ctx, n)
	}), timed(func(ctx context.Context) error {
		_, err := conn.Exec(ctx, `insert into bare (data) values ($1)`, append([]byte(uniqueMessage(n)), make([]byte, overhead)...))
		return err
	}))
	if err != nil {
		return err
	}
	p.compare("PostgreSQL: append of one writer, to a bare insert", atMost(1.3), times("", took[0]), times("bare insert", took[1]))
	return nil
}

// manyWriters measures writers that each move a ref of their own, beside as many clients of
// pgbench that run the same statement.
func (p *postgresBench) manyWriters(ctx context.Context) (err error) {
	messagePool() // before the measurement
	store, err := objects.Open(ctx, p.server.URL("many"), objects.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	script, err := p.pgbenchScript(ctx)
	if err != nil {
		return err
	}
	writers := make([]func(context.Context, int) error, writerCount)
	for i := range writers {
		writers[i] = appendTo(store, fmt.Sprint("refs/heads/", i))
	}
	ours, theirs := figure{unit: "/s"}, figure{name: "pgbench", unit: "/s"}
	n := make([]int, writerCount)
	for round := -1; round < p.rounds; round++ { // the first round does not count, as in alternate
		rate, err := concurrently(ctx, p.benchDuration(), func(ctx context.Context, w int) error {
			n[w]++
			return writers[w](ctx, n[w]*writerCount+w)
		})
		if err != nil {
			return err
		}
		bare, err := p.pgbench(script)
		if err != nil {
			return err
		}
		if round >= 0 {
			ours.samples, theirs.samples = append(ours.samples, rate), append(theirs.samples, bare)
		}
	}
	p.compare(fmt.Sprintf("PostgreSQL: appends of %d writers, a ref each, to pgbench with the same statement", writerCount), atLeast(0.7), ours, theirs)
	return nil
}

// pgbenchScript writes a script with the statement of an append, which the server shows while
// its connection is idle. Values take the place of its parameters, and each client has a ref
// and a line of its own.
func (p *postgresBench) pgbenchScript(ctx context.Context) (path string, err error) {
	store, err := objects.Open(ctx, p.server.URL("script")+"&pool_max_conns=1&application_name=script", objects.Options{Create: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	write := appendTo(store, "refs/heads/main")
	for n := range 2 { // the first commit begins a line, which needs more
		if err := write(ctx, n); err != nil {
			return "", err
		}
	}
	conn, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var sql string
	if err := conn.QueryRow(ctx, `select query from pg_stat_activity where application_name = 'script'`).Scan(&sql); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, `insert into tract_ref (repo, name, line, gen, version, updated, seq, newest)
select 1000000, 'refs/bench/' || client, 0, 0, 0, 0, 0, '' from generate_series(0, $1::int - 1) client`, writerCount); err != nil {
		return "", err
	}
	const hash, ref = `sha256((random()::text || :client_id)::bytea)`, `'refs/bench/' || :client_id`
	values := []string{
		"1000000", ref, "select newest from tract_ref where repo = 1000000 and name = " + ref, // repo, name, newest log entry
		hash, ":client_id + 1", ":gen::bigint", "0", "nextval('tract_seq')", hash, "decode(repeat('ab', 240), 'hex')", // target, line, gen, time, log entry
		"true", "decode(repeat('cd', 140), 'hex')", hash, "decode(repeat('ef', 660), 'hex')", "0", // owns its line, commit, content, time
	}
	sql = regexp.MustCompile(`\$\d+`).ReplaceAllStringFunc(sql, func(parameter string) string {
		n, err := strconv.Atoi(parameter[1:])
		if err != nil || n > len(values) {
			return parameter
		}
		return "(" + values[n-1] + ")"
	})
	path = filepath.Join(p.server.Dir, "append.sql")
	script := "\\set gen random(1, 4000000000000000000)\n" + strings.ReplaceAll(sql, "\n", " ") + ";\n"
	return path, os.WriteFile(path, []byte(script), 0o644) //nolint:gosec // another user runs pgbench
}

// benchDuration is how long pgbench runs, which counts whole seconds: longer than the other
// measurements of writes, since its clients connect in that time too.
func (p *postgresBench) benchDuration() time.Duration {
	return max(5*p.duration/3, time.Second).Truncate(time.Second)
}

// pgbench runs a script with as many clients as there are writers, and returns how many
// transactions there were in a second.
func (p *postgresBench) pgbench(script string) (rate float64, err error) {
	out, err := p.server.Command("pgbench", "-n", "-h", p.server.Dir, "-p", strconv.Itoa(p.server.Port), "-U", "tract", "-c", strconv.Itoa(writerCount), "-j", "2",
		"-M", "prepared", "-T", strconv.Itoa(int(p.benchDuration().Seconds())), "-f", script, "postgres").CombinedOutput()
	found := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	if found == nil {
		return 0, fmt.Errorf("pgbench: no rate in\n%s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// history measures a long history beside the same one in the embedded engine.
func (p *postgresBench) history(ctx context.Context) (err error) {
	h, err := p.bench.history(ctx, p.upTo(hundredThousand))
	if err != nil {
		return err
	}
	c, err := h.copy("postgres")
	if err != nil {
		return err
	}
	embedded, err := tract.Open(ctx, c.store(), tract.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, embedded.Close(), os.RemoveAll(c.dir)) }()
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `create schema history`); err != nil {
		return err
	}
	url := p.server.URL("history") + "&search_path=history" // tables of its own
	if _, err := maintain.BackupTo(ctx, embedded, url, maintain.BackupOptions{}); err != nil {
		return err
	}
	repo, err := tract.Open(ctx, url, tract.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	if _, err := maintain.GC(ctx, repo, objects.Sweep{}); err != nil {
		return err
	}
	if err := p.size(ctx, conn, repo, h); err != nil {
		return err
	}
	return p.readHistory(ctx, conn, repo, embedded, h)
}

// size measures the tables of the history, without the free space that sealing has left.
func (p *postgresBench) size(ctx context.Context, conn *pgx.Conn, repo *tract.Repo, h *history) error {
	if _, err := conn.Exec(ctx, `vacuum full`); err != nil {
		return err
	}
	m, _ := objects.As[objects.Maintainer](repo.Store())
	_, bytes, err := m.Size(ctx)
	if err != nil {
		return err
	}
	p.compare(named("PostgreSQL: size, to the text", h.size), atMost(0.6).only(h.size == hundredThousand), megabytes("", bytes), megabytes("text", h.text))
	return nil
}

func (p *postgresBench) readHistory(ctx context.Context, conn *pgx.Conn, repo, embedded *tract.Repo, h *history) error {
	walk := func(repo *tract.Repo) side {
		return timed(func(ctx context.Context) error {
			ref, err := objects.ReadRef(ctx, repo.Store(), "refs/heads/main")
			if err != nil {
				return err
			}
			for _, err := range commit.WalkReuse(ctx, repo.Store(), ref.Target, 0) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	took, err := alternate(ctx, p.rounds, 0, walk(repo), walk(embedded))
	if err != nil {
		return err
	}
	p.compare(named("PostgreSQL: walk of headers, to the embedded engine", h.size), atMost(8), times("", took[0]), times("embedded", took[1]))
	n := h.size
	after := func(repo *tract.Repo) side {
		return func(ctx context.Context) (time.Duration, error) {
			n++
			if _, err := repo.Branch("main").Append(ctx, []content.Block{block(n, message(writerSeed, n))}, tract.AppendOptions{}); err != nil {
				return 0, err
			}
			start := time.Now()
			_, err := repo.Compile(ctx, "main", tract.CompileOptions{})
			return time.Since(start), err
		}
	}
	empty := timed(func(ctx context.Context) error {
		_, err := conn.Exec(ctx, `select 1`)
		return err
	})
	if took, err = alternate(ctx, 20*p.rounds, 0, after(repo), after(embedded), empty); err != nil {
		return err
	}
	p.compare(named("PostgreSQL: compile after one commit, to the embedded engine", h.size), atMost(1.5), times("", took[0]), times("embedded", took[1]))
	p.compare("PostgreSQL: an empty statement, to that compile in the embedded engine", noLimit, times("", took[2]), times("embedded", took[1]))
	return nil
}
