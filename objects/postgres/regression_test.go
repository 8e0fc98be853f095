//go:build postgres

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// TestAuditEndsWithTheErrorOfItsCaller returns an error that looks like a lost connection.
func TestAuditEndsWithTheErrorOfItsCaller(t *testing.T) {
	s := openURL(t, freshURL(t))
	grow(t, s, "refs/heads/main", "main", 3, 3)
	m, _ := objects.As[objects.Maintainer](s)
	begun := 0
	err := m.Audit(t.Context(), objects.Audit{
		Begin: func(int) error {
			if begun++; begun > 1 {
				return errors.New("the audit began again")
			}
			return nil
		},
		Objects: func([]objects.Object) error { return io.ErrUnexpectedEOF },
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || begun != 1 {
		t.Errorf("the audit began %d times and returned %v", begun, err)
	}
}

// TestDamagedRowBesideAnIntactSegment reads a content whose segment is intact while another
// row has its id and other bytes.
func TestDamagedRowBesideAnIntactSegment(t *testing.T) {
	url := freshURL(t)
	s := openURL(t, url)
	_, contents := grow(t, s, "refs/heads/main", "main", sealAt, sealAt)
	sealAll(t, s)
	in, _ := objects.As[*store](s)
	wrong := objects.New(objects.KindContent, nil, nil, []byte("other bytes"))
	_, err := in.pool.Exec(t.Context(), `insert into tract_blob (repo, id, kind, codec, data, put) values ($1, $2, $3, 0, $4, 0)`,
		in.repo, contents[5].ID[:], int16(objects.KindContent), pack.AppendRecord(nil, &wrong))
	if err != nil {
		t.Fatal(err)
	}
	o, err := objects.Read(t.Context(), openURL(t, url), contents[5].ID)
	if err != nil || string(o.Data) != string(contents[5].Data) {
		t.Errorf("the content is %q, %v", o.Data, err)
	}
}

// TestOneSealerForABatch appends many segments' worth of commits at once.
func TestOneSealerForABatch(t *testing.T) {
	s := openURL(t, freshURL(t))
	in, _ := objects.As[*store](s)
	in.sealer.turn.Lock()
	grow(t, s, "refs/heads/main", "main", 8*segmentSize, 8*segmentSize)
	time.Sleep(50 * time.Millisecond) // goroutines reach the lock
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	in.sealer.turn.Unlock()
	if n := strings.Count(string(stacks), "sealLater.func1("); n != 1 {
		t.Errorf("%d goroutines seal the line of one batch", n)
	}
	sealAll(t, s)
}

// ownSchema returns a URL whose tables are in a schema of their own, which does not have them yet.
func ownSchema(t *testing.T) string {
	t.Helper()
	url, own := freshURL(t), fmt.Sprintf("own_%d", time.Now().UnixNano())
	sql(t, url, "create schema "+own)
	t.Cleanup(func() { sql(t, url, "drop schema "+own+" cascade") })
	return url + "&search_path=" + own
}

// TestSchemaOfAnotherVersion opens databases of older and newer programs.
func TestSchemaOfAnotherVersion(t *testing.T) {
	url := ownSchema(t)
	openURL(t, url)
	for version, want := range map[int]string{oldestSchema - 1: "tract backup --to", oldestSchema: "tract init", schemaVersion + 1: "use a newer tract"} {
		sql(t, url, fmt.Sprintf("update tract_schema set version = %d", version))
		_, err := objects.Open(t.Context(), url, objects.Options{})
		if !errors.Is(err, objects.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v; want an error that says %q", version, err, want)
		}
	}
}

// TestManyUpgradeTheSchema opens a schema of version 4 from many stores at once.
func TestManyUpgradeTheSchema(t *testing.T) {
	url := ownSchema(t)
	sql(t, url, schemaSQL, "update tract_schema set version = 4", "alter table tract_ref drop owns_line",
		"create function tract_check_position(bigint, bigint, bigint) returns void language sql as 'select'")
	var all sync.WaitGroup
	const writers = 8
	for w := range writers {
		all.Go(func() {
			s, err := objects.Open(t.Context(), url, objects.Options{Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			if err := increment(t.Context(), s, "refs/heads/main", fmt.Sprint("writer ", w)); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
	wantCount(t, url, "refs/heads/main", writers)
}

// TestRestoreSurvivesCuts restores a log while the connection is cut at each statement, after
// the server has done it: at COMMIT, too.
func TestRestoreSurvivesCuts(t *testing.T) {
	from := openURL(t, freshURL(t))
	commits, contents := grow(t, from, "refs/heads/main", "main", 3, 1)
	list, err := from.Log(t.Context(), "refs/heads/main", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b objects.LogEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	for n := 1; ; n++ {
		url := freshURL(t)
		if err := openURL(t, url).Apply(t.Context(), objects.Batch{Put: append(contents[:3:3], commits...)}); err != nil {
			t.Fatal(err)
		}
		p := newProxy(t, n, true)
		s := openURL(t, p.url(url))
		m, _ := objects.As[objects.Maintainer](s)
		if err := m.Restore(t.Context(), list); err != nil {
			t.Fatalf("cut at statement %d: %v", n, err)
		}
		log, err := s.Log(t.Context(), "refs/heads/main", 0, 0)
		if err != nil || len(log) != len(list) {
			t.Fatalf("cut at statement %d: %d entries, %v; want %d", n, len(log), err, len(list))
		}
		if p.count.Load() < int64(n) {
			return
		}
	}
}

// TestPurgeCountsAfterItsFirstTransaction has the second transaction of a purge fail.
func TestPurgeCountsAfterItsFirstTransaction(t *testing.T) {
	url := freshURL(t)
	s := openURL(t, url)
	_, contents := grow(t, s, "refs/heads/main", "main", 3, 3)
	in, _ := objects.As[*store](s)
	name := fmt.Sprintf("fail_%d", in.repo)
	sql(t, url, "create function "+name+"() returns trigger language plpgsql as $$ begin raise 'second transaction'; end $$",
		fmt.Sprintf("create trigger %s before update on tract_repo for each row when (new.id = %d and new.purges = old.purges) execute function %[1]s()", name, in.repo))
	t.Cleanup(func() { sql(t, url, "drop function "+name+" cascade") })
	n, err := objects.Purge(t.Context(), s, []objects.Tombstone{{ID: contents[1].ID, Time: time.Now()}}, nil)
	if err == nil || n != 1 {
		t.Errorf("%d objects are purged, %v; want 1 and an error", n, err)
	}
}

// TestPurgeDuringAnAppend has the process learn of a purge while it appends: what it appended
// may have been purged, and is not remembered.
func TestPurgeDuringAnAppend(t *testing.T) {
	s := openURL(t, freshURL(t))
	in, _ := objects.As[*store](s)
	unlock := lockRepo(t, s)
	defer unlock()
	c, content := counting(objects.ID{}, 1, "main")
	done := make(chan error, 1)
	go func() { done <- s.Apply(t.Context(), objects.Batch{Put: []objects.Object{c, content}}) }()
	waitForLocks(t, s, 1)
	in.setPurges(in.purges.Load() + 1) // as a walk does
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, ok := in.recent.get(content.ID); ok {
		t.Error("the content is remembered")
	}
}

// TestAppendReadsNoOtherRows plans an append while the tables are so small that reading all of a table
// is cheap: the plan, which is used for ever, looks up keys all the same.
func TestAppendReadsNoOtherRows(t *testing.T) {
	url := ownSchema(t)
	grow(t, openURL(t, url), "refs/heads/other", "other", 3, 3)
	sql(t, url, "vacuum analyze tract_ref, tract_line, tract_tail, tract_blob, tract_tombstone")
	config, repo, _, err := parseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	var plans strings.Builder
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { plans.WriteString(n.Message + "\n") }
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; set client_min_messages = log", pgx.QueryExecModeSimpleProtocol)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := objects.As[*store](openURL(t, url+"&repo="+repo))
	in.pool, pool = pool, in.pool
	t.Cleanup(pool.Close)
	first, content := counting(objects.ID{}, 1, "main")
	large := objects.New(objects.KindContent, nil, nil, []byte(strings.Repeat("large ", 2000)))
	second, _ := counting(first.ID, 2, "main")
	for _, b := range []objects.Batch{
		{Put: []objects.Object{first, content}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", New: first.ID}}},
		{Put: []objects.Object{second, large}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: first.ID, New: second.ID}}, Copies: true},
	} {
		if err := in.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, plan := range strings.Split(plans.String(), "Query Text: ") {
		if !strings.HasPrefix(strings.TrimSpace(plan), "select") && strings.Contains(plan, "Seq Scan on tract") { // a select writes nothing
			t.Errorf("an append reads all of a table:\n%s", plan)
		}
	}
	if n := strings.Count(plans.String(), "Index"); n < 4 {
		t.Fatalf("%d plans with an index were seen:\n%s", n, plans.String())
	}
}

// TestWalkOfOwnCommitsIsLazy begins a walk from a tip after many appends: a compile stops at the commit
// before, and the others are not copied for it.
func TestWalkOfOwnCommitsIsLazy(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, _ := grow(t, s, "refs/heads/main", "main", 100, 20)
	for run, err := range objects.ChainRuns(t.Context(), s, commits[99].ID, 0) {
		if err != nil || len(run.Objects) > recentPage {
			t.Errorf("the first run has %d commits, %v; want at most %d", len(run.Objects), err, recentPage)
		}
		break
	}
}

// TestOriginIsReadOnce reads an origin again, as every compile does: it is not looked up again, whether this
// process has read it or written it. A content, which may be purged meanwhile, is.
func TestOriginIsReadOnce(t *testing.T) {
	url := freshURL(t)
	origin := objects.New(objects.KindOrigin, nil, nil, []byte("a response"))
	content := objects.New(objects.KindContent, nil, nil, []byte(strings.Repeat("large ", 2000)))
	writer := openURL(t, url)
	if err := writer.Apply(t.Context(), objects.Batch{Put: []objects.Object{origin, content}}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]objects.Store{"writer": writer, "reader": openURL(t, url)} {
		in, _ := objects.As[*store](s)
		for _, c := range []struct {
			o          objects.Object
			statements int64 // of the second time
		}{{origin, 0}, {content, 1}} {
			var before int64
			for range 2 {
				before = in.pool.Stat().AcquireCount()
				if o, err := objects.Read(t.Context(), s, c.o.ID); err != nil || string(o.Data) != string(c.o.Data) {
					t.Fatalf("%s: %q, %v", name, o.Data, err)
				}
			}
			if n := in.pool.Stat().AcquireCount() - before; n != c.statements {
				t.Errorf("%s: %d statements read the %s again, want %d", name, n, c.o.Kind, c.statements)
			}
		}
	}
}

// TestStatementTimeout ends a statement that takes longer than it may, although the context goes on.
func TestStatementTimeout(t *testing.T) {
	in, _ := objects.As[*store](openURL(t, freshURL(t)))
	err := in.attempt(t.Context(), 20*time.Millisecond, func(ctx context.Context) error {
		_, err := in.pool.Exec(ctx, "select pg_sleep(600)")
		return err
	})
	if !errors.Is(err, errSlow) {
		t.Errorf("%v; want %v", err, errSlow)
	}
}

// TestCloseWhileSealingWaits closes a store whose sealing waits for the lock of gc or purge.
func TestCloseWhileSealingWaits(t *testing.T) {
	url := freshURL(t)
	one, two := openURL(t, url), openURL(t, url)
	in, _ := objects.As[*store](one)
	unlock := lockRepo(t, two)
	timer := time.AfterFunc(4*closeTime, unlock)
	defer func() {
		if timer.Stop() {
			unlock()
		}
	}()
	in.sealLater(1)
	waitForLocks(t, two, 1)
	start := time.Now()
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 2*closeTime {
		t.Errorf("Close took %v, want at most about %v", took, closeTime)
	}
}
