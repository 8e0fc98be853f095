//go:build postgres

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tract-vcs/tract/internal/postgrestest"
)

// embeddedOnly are the scripts that cannot run on a store in a database, each with the reason.
var embeddedOnly = map[string]string{
	"backup_bad":         "names folders with --dir and damages the file",
	"bad_damaged":        "damages the file of the store",
	"bad_flags":          "names the file of the store as a folder",
	"bad_key":            "looks for a key in the file of the store",
	"bad_read-only":      "makes the file of the store read-only",
	"bad_store":          "is about folders without a store",
	"demo":               "makes a store in a folder and goes on with it",
	"doctor":             "compares the path and the size of the file",
	"fsck":               "damages the file of the store",
	"fsck_bad":           "damages the file of the store",
	"fsck_json":          "damages the file of the store",
	"gc_bad":             "damages the file of the store",
	"gc_ttl":             "looks for purged text in the file of the store",
	"init":               "is about the folder of the store",
	"init_json":          "is about the folder of the store",
	"init_personal":      "is about the store in the home folder",
	"log_damaged":        "damages the file of the store",
	"proxy_broken_store": "moves the file of the store",
	"purge":              "looks for purged text in the file of the store",
	"purge_damaged":      "damages the file of the store",
	"purge_mask":         "looks for purged text in the file of the store",
	"purge_reasoning":    "looks for purged text in the file of the store",
	"purge_secrets":      "looks for purged text in the file of the store",
	"reasoning_damaged":  "damages the file of the store",
	"recover":            "damages the file of the store",
	"recover_bad":        "recovers a store by its folder",
	"recover_json":       "recovers a store by its folder",
	"status":             "compares the path and the size of the file",
	"status_damaged":     "damages the file of the store",
	"status_json":        "compares the engine, the path and the size of the file",
}

// TestFollowOnPostgres follows the log of a store from a folder of its own, as another host does.
func TestFollowOnPostgres(t *testing.T) {
	server, err := postgrestest.Start(postgrestest.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Remove)
	var hosts [2][]string
	for i := range hosts {
		hosts[i] = []string{"--store", server.URL("follow"), "--dir", t.TempDir()}
		process(t, append(hosts[i], "init")...)
	}
	follow(t, hosts[0], hosts[1])
}

// TestScriptsOnPostgres runs the stories of testdata/script with TRACT_STORE set: the same
// commands, the same output, on a store in a database. Those of testdata/postgres are about
// such a store.
func TestScriptsOnPostgres(t *testing.T) {
	server, err := postgrestest.Start(postgrestest.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Remove)
	all, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob(filepath.Join("testdata", "postgres", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, own...)
	var files, schemas []string
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if embeddedOnly[name] == "" {
			files = append(files, file)
		}
		schemas = append(schemas, fmt.Sprintf(`create schema "%s"`, name))
	}
	if out, err := server.Command("psql", "-q", "-h", server.Dir, "-U", "tract", "-d", "postgres", "-c", strings.Join(schemas, ";")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := scriptParams()
	p.Dir, p.Files, p.UpdateScripts = "", files, false
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
		e.Setenv("PGHOST", server.Dir)
		e.Setenv("TRACT_STORE", server.URL(name)+"&search_path="+name)
		return setup(e)
	}
	for name := range embeddedOnly {
		if !slices.Contains(all, filepath.Join("testdata", "script", name+".txtar")) {
			t.Errorf("embeddedOnly names %s, which is no script", name)
		}
	}
	testscript.Run(t, p)
}
