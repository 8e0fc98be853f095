//go:build postgres

package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a PostgreSQL server in a temporary folder, reached through a Unix socket. Its
// programs run as an unprivileged user when the test is root, because they refuse root.
type server struct {
	bin, dir string
	port     int
	process  *exec.Cmd
	log      *bytes.Buffer
}

// shared is the server of all tests that do not need one of their own.
var shared *server

func TestMain(m *testing.M) {
	if os.Getenv("TRACT_TEST_POSTGRES") == "" {
		var err error
		if shared, err = startServer(binaries()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if shared != nil {
		shared.remove()
	}
	os.Exit(code)
}

// binaries returns the folder with the programs of the newest installed server; empty: none.
// TRACT_TEST_POSTGRES_BIN names another.
func binaries() string {
	if dir := os.Getenv("TRACT_TEST_POSTGRES_BIN"); dir != "" {
		return dir
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	more, _ := filepath.Glob("/usr/local/pgsql/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	if found = append(found, more...); len(found) > 0 {
		return filepath.Dir(found[0])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// major is the version in a path such as /usr/lib/postgresql/15/bin/initdb.
func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// startServer makes a cluster and starts it.
func startServer(bin string, options ...string) (*server, error) {
	if bin == "" {
		return nil, fmt.Errorf("these tests start a PostgreSQL server, and none is installed: install the Debian package postgresql (apt-get install postgresql), or name a server in TRACT_TEST_POSTGRES")
	}
	dir, err := os.MkdirTemp("", "tractpg")
	if err != nil {
		return nil, err
	}
	s := &server{bin: bin, dir: dir, port: 5432, log: &bytes.Buffer{}}
	if id := s.user(); id != nil {
		if err := os.Chown(dir, int(id.Uid), int(id.Gid)); err != nil {
			return nil, err
		}
	}
	init := s.command("initdb", "-D", s.data(), "-U", "tract", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s, s.start(options...)
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// user returns whom the programs run as; nil: the user of the test.
func (s *server) user() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.user(), Pdeathsig: syscall.SIGKILL}
	c.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir)
	return c
}

// start starts the server and waits until it accepts connections.
func (s *server) start(options ...string) error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_connections=200", "-c", "unix_socket_permissions=0777"}
	for _, o := range options {
		args = append(args, "-c", o)
	}
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	for range 600 {
		if s.sql("select 1") == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.kill()
	return fmt.Errorf("the server does not start:\n%s", s.log)
}

// kill ends the server as a crash does.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // its children end too
		_ = s.process.Wait()
		s.process = nil
	}
}

func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// url is the URL of a repo on the server.
func (s *server) url(repo string) string {
	return fmt.Sprintf("postgres://tract@/postgres?host=%s&port=%d&repo=%s", s.dir, s.port, repo)
}

var repos atomic.Int64

// freshURL returns the URL of a repo that no other test uses.
func freshURL(t *testing.T) string {
	t.Helper()
	repo := fmt.Sprintf("test-%d-%d", os.Getpid(), repos.Add(1))
	if base := os.Getenv("TRACT_TEST_POSTGRES"); base != "" {
		join := "?"
		if strings.Contains(base, "?") {
			join = "&"
		}
		return base + join + "repo=" + repo
	}
	return shared.url(repo)
}

// sql runs statements as the owner.
func (s *server) sql(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, fmt.Sprintf("postgres://tract@/postgres?host=%s&port=%d", s.dir, s.port))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}
