//go:build postgres

package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/internal/postgrestest"
)

// shared is the server of all tests that do not need one of their own; nil when
// TRACT_TEST_POSTGRES names a database.
var shared *postgrestest.Server

func TestMain(m *testing.M) {
	if os.Getenv("TRACT_TEST_POSTGRES") == "" {
		var err error
		if shared, err = postgrestest.Start(binaries()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if shared != nil {
		shared.Remove()
	}
	os.Exit(code)
}

// binaries returns the programs of the server that is tested: those in the folder that
// TRACT_TEST_POSTGRES_BIN names, or the newest that are installed.
func binaries() string {
	if dir := os.Getenv("TRACT_TEST_POSTGRES_BIN"); dir != "" {
		return dir
	}
	return postgrestest.Binaries()
}

// ownServer starts a server for one test.
func ownServer(t *testing.T, options ...string) *postgrestest.Server {
	t.Helper()
	s, err := postgrestest.Start(binaries(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Remove)
	return s
}

var repos atomic.Int64

// freshRepo returns the name of a repo that no other test uses.
func freshRepo() string { return fmt.Sprintf("test-%d-%d", os.Getpid(), repos.Add(1)) }

// freshURL returns the URL of a repo that no other test uses.
func freshURL(t *testing.T) string {
	t.Helper()
	repo := freshRepo()
	base := os.Getenv("TRACT_TEST_POSTGRES")
	if base == "" {
		return shared.URL(repo)
	}
	join := "?"
	if strings.Contains(base, "?") {
		join = "&"
	}
	return base + join + "repo=" + repo
}

// sql runs statements in the database of a URL.
func sql(t *testing.T, url string, statements ...string) {
	t.Helper()
	config, _, _, err := parseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(context.Background(), config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := c.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
