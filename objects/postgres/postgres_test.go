//go:build postgres

package postgres

import (
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// openURL opens a store, and closes it when the test ends.
func openURL(t *testing.T, url string) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), url, objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// conformance runs the suite with a new URL for each store.
func conformance(t *testing.T, url func(t *testing.T) string) {
	last := ""
	objectstest.Run(t, objectstest.Engine{
		Open: func(t *testing.T) objects.Store {
			last = url(t)
			return openURL(t, last)
		},
		Reopen: func(t *testing.T, _ objects.Store) objects.Store { return openURL(t, last) },
	})
}

func TestConformance(t *testing.T) { conformance(t, freshURL) }

// TestConformanceOfOneConnection runs with a pool of one connection and without prepared
// statements.
func TestConformanceOfOneConnection(t *testing.T) {
	conformance(t, func(t *testing.T) string { return freshURL(t) + "&pool_max_conns=1&default_query_exec_mode=exec" })
}

// TestConformanceThroughPgBouncer runs behind a pooler that gives each transaction another
// connection.
func TestConformanceThroughPgBouncer(t *testing.T) {
	pooled := pooler(t)
	conformance(t, func(t *testing.T) string { return pooled(t) + "&default_query_exec_mode=exec" })
}

// pooler starts PgBouncer in front of a server of its own. It returns a function that returns
// the URL of a repo that no other test uses.
func pooler(t *testing.T) func(t *testing.T) string {
	t.Helper()
	url, err := ownServer(t).Pooler()
	if err != nil {
		t.Fatal(err)
	}
	return func(*testing.T) string { return url(freshRepo()) }
}

// TestManySerializableWriters has several stores write to the same refs where transactions are
// serializable by default, so that many fail and are repeated.
func TestManySerializableWriters(t *testing.T) {
	url := freshURL(t) + "&default_transaction_isolation=serializable"
	crowd := startCrowd(t, []objects.Store{openURL(t, url), openURL(t, url), openURL(t, url)}, 3, 12)
	crowd.grow(t, 200)
	crowd.end(t, url)
}

// TestManyWritersThroughPgBouncer has several stores write to the same refs through the pooler,
// which has fewer connections than they.
func TestManyWritersThroughPgBouncer(t *testing.T) {
	url := pooler(t)(t) + "&default_query_exec_mode=exec"
	crowd := startCrowd(t, []objects.Store{openURL(t, url), openURL(t, url), openURL(t, url)}, 3, 12)
	crowd.grow(t, 200)
	crowd.end(t, url)
}
