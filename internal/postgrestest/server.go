//go:build unix

// Package postgrestest starts PostgreSQL servers for tests: in a temporary folder, reached
// through a Unix socket and without a network.
package postgrestest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNotInstalled says that there is no server to start, and which package has one.
var ErrNotInstalled = errors.New("these tests start a PostgreSQL server, and none is installed: install the Debian package postgresql (apt-get install postgresql), or give the URL of a database in TRACT_TEST_POSTGRES")

// errNoPooler says which package has the pooler.
var errNoPooler = errors.New("this test starts PgBouncer, and it is not installed: install the Debian package pgbouncer (apt-get install pgbouncer)")

// Server is a cluster in a folder of its own and the server process that runs on it. Its
// programs run as an unprivileged user when the test is root, because they refuse root.
type Server struct {
	Dir  string // holds the cluster, and the socket
	Port int    // is part of the name of the socket

	bin     string
	process *exec.Cmd
	pooler  *exec.Cmd // nil: none was started
	log     *logBuffer
}

// Binaries returns the folder with the programs of the newest server that is installed;
// empty: there is none.
func Binaries() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the error is of the pattern
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	if len(found) > 0 {
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

// Start makes a cluster with the programs in a folder and starts its server. The superuser
// is "tract". Options are settings of the server, such as "wal_level=replica".
func Start(bin string, options ...string) (*Server, error) {
	if bin == "" {
		return nil, ErrNotInstalled
	}
	s, err := newServer(bin, 5432)
	if err != nil {
		return nil, err
	}
	if out, err := s.Command("initdb", "-D", s.data(), "-U", "tract", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		s.Remove()
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := s.Start(options...); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

func newServer(bin string, port int) (*Server, error) {
	// TMPDIR may be closed to other users, and too long: a socket's name has at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "tractpg")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Port: port, bin: bin, log: &logBuffer{}}
	if id := unprivileged(); id != nil {
		err = os.Chown(dir, int(id.Uid), int(id.Gid))
	}
	return s, err
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// unprivileged returns whom the programs run as; nil: the user of the test.
func unprivileged() *syscall.Credential {
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

// Command is a program of the server, such as "pg_ctl".
func (s *Server) Command(name string, args ...string) *exec.Cmd {
	return s.command(filepath.Join(s.bin, name), args...)
}

// command is a program that runs as the server does.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), path, args...)
	c.Dir = s.Dir
	c.SysProcAttr = processAttributes()
	c.SysProcAttr.Credential = unprivileged()
	c.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.Dir)
	return c
}

// A server and a pooler are waited for at most a minute.
const (
	startTries = 2400
	startPause = 25 * time.Millisecond
)

// Start starts the server again, after Kill, and waits until it accepts connections.
func (s *Server) Start(options ...string) error {
	args := []string{
		"-D", s.data(), "-p", strconv.Itoa(s.Port), "-k", s.Dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_connections=200", "-c", "unix_socket_permissions=0777",
	}
	for _, o := range options {
		args = append(args, "-c", o)
	}
	s.log.reset()
	s.process = s.Command("postgres", args...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	for range startTries {
		if strings.Contains(s.log.String(), "ready to accept") {
			return nil
		}
		time.Sleep(startPause)
	}
	s.Kill()
	return fmt.Errorf("the server does not start:\n%s", s.log)
}

// Kill ends the server at once, as a crash of its process does.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // so that its children end too
		_ = s.process.Wait()                          // it says how it was ended
		s.process = nil
	}
}

// Remove kills the server and its pooler, and removes its folder.
func (s *Server) Remove() {
	if s.pooler != nil {
		_ = s.pooler.Process.Kill()
		_ = s.pooler.Wait() // it says how it was ended
	}
	s.Kill()
	_ = os.RemoveAll(s.Dir) // it is temporary
}

// URL is the URL of a store on the server.
func (s *Server) URL(repo string) string {
	return fmt.Sprintf("postgres://tract@/postgres?host=%s&port=%d&repo=%s", s.Dir, s.Port, repo)
}

// poolerPort is part of the name of the socket of the pooler.
const poolerPort = 6432

// poolerConfig hands each transaction to one of a few connections to the server.
const poolerConfig = `[databases]
* = host=%[1]s port=%[2]d
[pgbouncer]
listen_addr =
listen_port = %[3]d
unix_socket_dir = %[1]s
auth_type = trust
auth_file = %[1]s/users.txt
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`

// Pooler starts PgBouncer in transaction mode in front of the server. It returns a function that
// returns the URL of a store through the pooler.
func (s *Server) Pooler() (url func(repo string) string, err error) {
	program := "/usr/sbin/pgbouncer" // a folder that is not in the PATH of every user
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("pgbouncer"); err != nil {
			return nil, errNoPooler
		}
	}
	config := filepath.Join(s.Dir, "pgbouncer.ini")
	files := map[string]string{config: fmt.Sprintf(poolerConfig, s.Dir, s.Port, poolerPort), filepath.Join(s.Dir, "users.txt"): `"tract" ""`}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // another user runs it
			return nil, err
		}
	}
	s.pooler = s.command(program, "--quiet", config)
	s.pooler.Stderr = s.log
	if err := s.pooler.Start(); err != nil {
		return nil, err
	}
	socket := filepath.Join(s.Dir, fmt.Sprintf(".s.PGSQL.%d", poolerPort))
	for range startTries {
		if _, err := os.Stat(socket); err == nil {
			through := *s
			through.Port = poolerPort
			return through.URL, nil
		}
		time.Sleep(startPause)
	}
	return nil, fmt.Errorf("PgBouncer does not start:\n%s", s.log)
}

// Standby makes a copy of the cluster that follows it, and starts a server on it.
func (s *Server) Standby() (*Server, error) {
	c, err := newServer(s.bin, s.Port+1)
	if err != nil {
		return nil, err
	}
	out, err := s.Command("pg_basebackup", "-h", s.Dir, "-p", strconv.Itoa(s.Port), "-U", "tract", "-D", c.data(), "-R", "-c", "fast").CombinedOutput()
	if err != nil {
		c.Remove()
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if err := c.Start(); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// Promote makes a standby the primary.
func (s *Server) Promote() error {
	if out, err := s.Command("pg_ctl", "promote", "-D", s.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("pg_ctl promote: %w\n%s", err, out)
	}
	return nil
}

// logBuffer keeps what the server writes.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}
