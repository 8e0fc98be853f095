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

// conformance runs the suite with a parameter added to the URL of each store.
func conformance(t *testing.T, parameter string) {
	last := ""
	objectstest.Run(t, objectstest.Engine{
		Open: func(t *testing.T) objects.Store {
			last = freshURL(t) + parameter
			return openURL(t, last)
		},
		Reopen: func(t *testing.T, _ objects.Store) objects.Store { return openURL(t, last) },
	})
}

func TestConformance(t *testing.T) { conformance(t, "") }

// TestConformanceOfOneConnection runs with a pool of one connection and without prepared
// statements, as a transaction pooler wants it.
func TestConformanceOfOneConnection(t *testing.T) {
	conformance(t, "&pool_max_conns=1&default_query_exec_mode=exec")
}
