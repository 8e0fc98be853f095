//go:build postgres

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// proxy stands between a store and the server of the tests, and cuts the connection at the n-th
// statement: before the server has it, or after the server has done it.
type proxy struct {
	listener net.Listener
	dir      string
	network  string // of the server
	address  string
	cutAt    int64 // 0: never
	after    bool
	count    atomic.Int64
}

func newProxy(t *testing.T, cutAt int, after bool) *proxy {
	t.Helper()
	config, _, _, err := parseAddress(freshURL(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "tractpx")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, dir: dir, cutAt: int64(cutAt), after: after}
	p.network, p.address = pgconn.NetworkAddress(config.ConnConfig.Host, config.ConnConfig.Port)
	t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// url is a URL of the server as one of the proxy.
func (p *proxy) url(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Host = ""
	q := u.Query()
	q.Set("host", p.dir)
	q.Set("port", "5432")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// serve forwards one connection. Messages of the client have a type, a length and a body,
// all but the first, which has no type: see "Message Formats" in the manual.
func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var cutting atomic.Bool
	go func() { // from the server
		defer func() { _ = client.Close() }()
		for b := make([]byte, 1<<16); ; {
			n, err := server.Read(b)
			if n > 0 && cutting.Load() {
				return // the server has done it; nobody hears of that
			}
			if n > 0 {
				if _, err := client.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for first := true; ; first = false {
		message, kind, err := readMessage(client, first)
		if err != nil {
			return
		}
		if kind == 'E' || kind == 'Q' { // Execute, Query
			if p.count.Add(1) == p.cutAt {
				if !p.after {
					return
				}
				cutting.Store(true)
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

func readMessage(r io.Reader, first bool) (message []byte, kind byte, err error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	size := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
	message = append(head, make([]byte, size)...)
	_, err = io.ReadFull(r, message[len(head):])
	if !first {
		kind = head[0]
	}
	return message, kind, err
}

// counting is a commit that holds a number, above tip.
func counting(tip objects.ID, number int, who string) (commit, content objects.Object) {
	content = objects.New(objects.KindContent, nil, nil, fmt.Append(nil, who, " says ", number))
	var parents []objects.ID
	if !tip.IsZero() {
		parents = []objects.ID{tip}
	}
	return objects.New(objects.KindCommit, parents, []objects.ID{content.ID}, fmt.Append(nil, number)), content
}

// increment puts the next number on a ref.
func increment(ctx context.Context, s objects.Store, ref, who string, also ...objects.RefUpdate) error {
	return s.Update(ctx, ref, func(tip objects.ID) (objects.Batch, error) {
		n := 0
		if !tip.IsZero() {
			o, err := objects.Read(ctx, s, tip)
			if err != nil {
				return objects.Batch{}, err
			}
			if _, err := fmt.Sscan(string(o.Data), &n); err != nil {
				return objects.Batch{}, err
			}
		}
		c, content := counting(tip, n+1, who)
		b := objects.Batch{Put: []objects.Object{content, c}, Refs: []objects.RefUpdate{{Name: ref, Old: tip, New: c.ID}}}
		for _, u := range also {
			u.New = c.ID
			b.Refs = append(b.Refs, u)
		}
		return b, nil
	})
}

// wantCount checks that a ref counts to n, that every number and every content is there once,
// that its log has n entries, and that the store is sound.
func wantCount(t *testing.T, url, ref string, n int) {
	t.Helper()
	s := openURL(t, url)
	at, err := objects.ReadRef(t.Context(), s, ref)
	if err != nil {
		t.Fatal(err)
	}
	want := n
	for o, err := range objectstest.ChainWithContent(t.Context(), s, at.Target) {
		if err != nil {
			t.Fatal(err)
		}
		if o.Kind != objects.KindCommit {
			continue
		}
		if string(o.Data) != fmt.Sprint(want) {
			t.Fatalf("commit %d holds %s", want, o.Data)
		}
		want--
	}
	if want != 0 {
		t.Fatalf("%s counts down to %d, and from %d on", ref, want, n)
	}
	log, err := s.Log(t.Context(), ref, 0, 0)
	if err != nil || len(log) != n {
		t.Fatalf("the log of %s has %d entries, %v; want %d", ref, len(log), err, n)
	}
	wantSound(t, s)
}

// wantSound audits a store.
func wantSound(t *testing.T, s objects.Store) {
	t.Helper()
	m, _ := objects.As[objects.Maintainer](s)
	seen := map[objects.ID]int{}
	err := m.Audit(t.Context(), objects.Audit{
		Begin: func(int) error { clear(seen); return nil },
		Objects: func(list []objects.Object) error {
			for _, o := range list {
				if seen[o.ID]++; seen[o.ID] > 1 && o.Kind == objects.KindCommit {
					t.Errorf("commit %s is there %d times", o.ID.Short(), seen[o.ID])
				}
			}
			return nil
		},
		Damage: func(d objects.Damage) error { t.Errorf("damage: %+v", d); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCutConnections cuts the connection at every statement of a sequence of writes, before
// and after the server has done it: what was acknowledged is there, and nothing twice.
func TestCutConnections(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(map[bool]string{false: "before", true: "after"}[after], func(t *testing.T) {
			for n := 1; ; n++ {
				url := freshURL(t)
				p := newProxy(t, n, after)
				writeThrough(t, p.url(url))
				wantCount(t, url, "refs/heads/main", 5)
				if p.count.Load() < int64(n) {
					if n < 10 {
						t.Errorf("only %d statements went through the proxy", p.count.Load())
					}
					return
				}
			}
		})
	}
}

// writeThrough makes the same writes at every cut: with one ref, with several in a
// transaction, and without.
func writeThrough(t *testing.T, url string) {
	t.Helper()
	s, err := objects.Open(t.Context(), url+"&pool_max_conns=2", objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for i := range 5 {
		var also []objects.RefUpdate
		if i == 3 {
			also = append(also, objects.RefUpdate{Name: "refs/tags/three"}, objects.RefUpdate{Name: "refs/tags/third"})
		}
		if err := increment(t.Context(), s, "refs/heads/main", "proxy", also...); err != nil {
			t.Fatal(err)
		}
	}
	tip, err := objects.ReadRef(t.Context(), s, "refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	c, content := counting(tip.Target, 99, "loose")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{content, c}}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Read(t.Context(), s, c.ID); err != nil {
		t.Fatal(err)
	}
}

// crowd has writers increment refs until it is told to stop, and counts what was
// acknowledged of each ref.
type crowd struct {
	stop  atomic.Bool
	acked []atomic.Int64
	all   sync.WaitGroup
}

func startCrowd(t *testing.T, stores []objects.Store, refs, writers int) *crowd {
	t.Helper()
	c := &crowd{acked: make([]atomic.Int64, refs)}
	for w := range writers {
		c.all.Go(func() {
			for i := 0; !c.stop.Load(); i++ {
				ref := (w + i) % refs
				err := increment(t.Context(), stores[w%len(stores)], fmt.Sprint("refs/heads/", ref), fmt.Sprint("writer ", w))
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				c.acked[ref].Add(1)
			}
		})
	}
	return c
}

func (c *crowd) total() (n int64) {
	for i := range c.acked {
		n += c.acked[i].Load()
	}
	return n
}

// grow waits until so many more were acknowledged.
func (c *crowd) grow(t *testing.T, more int64) {
	t.Helper()
	want := c.total() + more
	for until := time.Now().Add(2 * time.Minute); c.total() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) || t.Failed() {
			t.Fatalf("%d writes were acknowledged, want %d", c.total(), want)
		}
	}
}

// end stops the writers and checks the refs: Update writes each number once.
func (c *crowd) end(t *testing.T, url string) {
	t.Helper()
	c.stop.Store(true)
	c.all.Wait()
	for i := range c.acked {
		wantCount(t, url, fmt.Sprint("refs/heads/", i), int(c.acked[i].Load()))
	}
}

// TestKilledServer kills the server while many write, and starts it again.
func TestKilledServer(t *testing.T) {
	s := ownServer(t)
	url := s.URL("killed")
	crowd := startCrowd(t, []objects.Store{openURL(t, url), openURL(t, url)}, 3, 8)
	for range 3 {
		crowd.grow(t, 30)
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	crowd.grow(t, 30)
	crowd.end(t, url)
}

// TestFailover kills a server that has a synchronous standby, and promotes the standby.
func TestFailover(t *testing.T) {
	primary := ownServer(t, "wal_level=replica", "max_wal_senders=4")
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Remove)
	sql(t, primary.URL("any"), "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
	url := fmt.Sprintf("postgres://tract@/postgres?host=%s,%s&port=%d,%d&target_session_attrs=read-write&repo=failover", primary.Dir, standby.Dir, primary.Port, standby.Port)
	crowd := startCrowd(t, []objects.Store{openURL(t, url), openURL(t, url)}, 3, 8)
	crowd.grow(t, 30)
	primary.Kill()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	crowd.grow(t, 30)
	crowd.end(t, url)
}

// TestCancelledWrite cancels an append that waits for a lock, and one that was not sent.
func TestCancelledWrite(t *testing.T) {
	url := freshURL(t)
	s := openURL(t, url)
	if err := increment(t.Context(), s, "refs/heads/main", "first"); err != nil {
		t.Fatal(err)
	}
	in, _ := objects.As[*store](s)
	tx, err := in.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table tract_ref in exclusive mode"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = increment(ctx, s, "refs/heads/main", "second")
	if !errors.Is(err, context.DeadlineExceeded) || !objects.IsUnknown(err) {
		t.Errorf("a write whose time is over while it waits: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // waits for the statement
		t.Fatal(err)
	}
	log, err := openURL(t, url).Log(t.Context(), "refs/heads/main", 0, 0)
	if err != nil || !slices.Contains([]int{1, 2}, len(log)) {
		t.Errorf("%d entries, %v", len(log), err)
	}
	wantCount(t, url, "refs/heads/main", len(log))
}

// TestManyWritersInOneProcess has many goroutines append to refs of their own, so that numbers
// of the log are drawn by all of them at once.
func TestManyWritersInOneProcess(t *testing.T) {
	const writers, each = 64, 20
	url := freshURL(t)
	s := openURL(t, url)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			tip := objects.ID{}
			for i := range each {
				c, content := counting(tip, i+1, fmt.Sprint(w))
				err := s.Apply(t.Context(), objects.Batch{
					Put: []objects.Object{c, content}, Refs: []objects.RefUpdate{{Name: fmt.Sprint("refs/heads/", w), Old: tip, New: c.ID}},
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				tip = c.ID
			}
		})
	}
	all.Wait()
	for _, w := range []int{0, writers - 1} {
		wantCount(t, url, fmt.Sprint("refs/heads/", w), each)
	}
}

// TestSequenceNumbersAscend draws many numbers of the log in a row, also after one that is far ahead.
func TestSequenceNumbersAscend(t *testing.T) {
	in, _ := objects.As[*store](openURL(t, freshURL(t)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := uint64(0)
	for i := range 20_000 {
		if i == 10_000 {
			last += 5000
		}
		n, err := in.drawSeq(ctx, last)
		if err != nil || n <= last {
			t.Fatalf("number %d is %d after %d, %v", i, n, last, err)
		}
		last = n
	}
}
