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

// Server is a cluster in a folder of its own and the server process that runs on it. Its
// programs run as an unprivileged user when the test is root, because they refuse root.
type Server struct {
	Dir  string // holds the cluster, and the socket
	Port int    // is part of the name of the socket

	bin     string
	process *exec.Cmd
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
	c := exec.CommandContext(context.Background(), filepath.Join(s.bin, name), args...)
	c.Dir = s.Dir
	c.SysProcAttr = processAttributes()
	c.SysProcAttr.Credential = unprivileged()
	c.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.Dir)
	return c
}

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
	for range 2400 {
		if strings.Contains(s.log.String(), "ready to accept") {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
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

// Remove kills the server and removes its folder.
func (s *Server) Remove() {
	s.Kill()
	_ = os.RemoveAll(s.Dir) // it is temporary
}

// URL is the URL of a store on the server.
func (s *Server) URL(repo string) string {
	return fmt.Sprintf("postgres://tract@/postgres?host=%s&port=%d&repo=%s", s.Dir, s.Port, repo)
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
