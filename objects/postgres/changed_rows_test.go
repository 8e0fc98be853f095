//go:build postgres

package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestChangedRows changes bytes in each kind of row: what is read is never something else
// than was put, and an audit finds it.
func TestChangedRows(t *testing.T) {
	const flip = `set_byte(%s, length(%[1]s) / 2, get_byte(%[1]s, length(%[1]s) / 2) # 1)`
	for _, c := range []struct{ table, column, where string }{
		{"tract_tail", "head", ""},
		{"tract_tail", "body", ""},
		{"tract_tail", "id", ""},
		{"tract_seg", "heads", ""},
		{"tract_seg", "bodies", ""},
		{"tract_seg", "tip", ""},
		{"tract_blob", "data", ""},
		{"tract_log", "record", "and record is not null"},
		{"tract_tombstone", "record", ""},
		{"tract_index", "data", ""},
		{"tract_ref", "target", ""},
		{"tract_ref", "newest", ""},
	} {
		t.Run(c.table+"."+c.column, func(t *testing.T) {
			url := freshURL(t)
			s := openURL(t, url)
			commits, contents := grow(t, s, "refs/heads/main", "main", 520, 520)
			large := objects.New(objects.KindContent, nil, nil, []byte(strings.Repeat("large ", 2000)))
			if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{large}}); err != nil {
				t.Fatal(err)
			}
			sealAll(t, s)
			if _, err := objects.Purge(t.Context(), s, []objects.Tombstone{{ID: contents[5].ID, Time: time.Now()}}, nil); err != nil {
				t.Fatal(err)
			}
			in, _ := objects.As[*store](s)
			sql(t, url, fmt.Sprintf(`update %s set %s = %s where repo = %d and %s is not null %s`, c.table, c.column, fmt.Sprintf(flip, c.column), in.repo, c.column, c.where))
			other := openURL(t, url)
			for i := range commits {
				for _, want := range []objects.Object{commits[i], contents[i]} {
					o, err := objects.Read(t.Context(), other, want.ID)
					if err == nil && (o.ID != want.ID || string(o.Data) != string(want.Data)) {
						t.Fatalf("object %d is %+v", i, o)
					}
				}
				if i > 20 && i < 500 {
					continue
				}
			}
			n := 0
			for o, err := range other.Chain(t.Context(), commits[len(commits)-1].ID, objects.ChainOptions{}) {
				if err == nil && o.ID != commits[len(commits)-1-n].ID {
					t.Fatalf("commit %d of the chain is another", n)
				}
				n++
			}
			damages := 0
			m, _ := objects.As[objects.Maintainer](other)
			if err := m.Audit(t.Context(), objects.Audit{Damage: func(objects.Damage) error { damages++; return nil }}); err != nil {
				t.Fatal(err)
			}
			if damages == 0 && c.table != "tract_tombstone" { // of which no hash is known
				t.Error("the audit finds nothing")
			}
		})
	}
}

// appendRole runs the statements of docs/postgres.md that make a role which may only append.
func appendRole(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```sql\n")
	block, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 || !strings.Contains(block, "tract_writer") {
		t.Fatal("docs/postgres.md has no statements for the role")
	}
	var list []string
	for _, s := range strings.Split(strings.ReplaceAll(block, "tract_writer", name), ";") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return append(list, "alter role "+name+" login", "alter role "+name+" password 'x'")
}

// TestAppendOnlyRole appends with the rights that docs/postgres.md gives, and can do no more.
func TestAppendOnlyRole(t *testing.T) {
	address := freshURL(t)
	owner := openURL(t, address)
	name := fmt.Sprint("tract_writer_", os.Getpid())
	sql(t, address, appendRole(t, name)...)
	t.Cleanup(func() { sql(t, address, "drop owned by "+name, "drop role "+name) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "x")
	s, err := objects.Open(t.Context(), u.String(), objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, contents := grow(t, s, "refs/heads/main", "main", 1100, 100) // sealing fails, and does no harm
	m, _ := objects.As[objects.Maintainer](s)
	if _, err := objects.Purge(t.Context(), s, []objects.Tombstone{{ID: contents[0].ID, Time: time.Now()}}, nil); !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("purge: %v", err)
	}
	if _, err := m.Sweep(t.Context(), objects.Sweep{Before: time.Now().Add(time.Hour)}); !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("sweep: %v", err)
	}
	if n, err := drain(owner.Get(t.Context(), []objects.ID{contents[0].ID, contents[1099].ID})); n != 2 || err != nil {
		t.Errorf("%d of 2 contents, %v", n, err)
	}
	wantSound(t, owner)
}

// TestManyMakeTheSchema opens a fresh schema from many stores at once.
func TestManyMakeTheSchema(t *testing.T) {
	address := freshURL(t)
	schema := fmt.Sprint("many_", os.Getpid())
	sql(t, address, "create schema "+schema)
	t.Cleanup(func() { sql(t, address, "drop schema "+schema+" cascade") })
	address += "&search_path=" + schema
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := objects.Open(t.Context(), address, objects.Options{Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			if err := increment(t.Context(), s, "refs/heads/main", "many"); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
	if _, err := objects.Open(t.Context(), address+"&repo=none", objects.Options{}); err != nil {
		t.Log(err)
	}
	sql(t, address, "update "+schema+".tract_schema set version = 99")
	if _, err := objects.Open(t.Context(), address, objects.Options{Create: true}); !errors.Is(err, objects.ErrFormat) || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("a newer schema: %v", err)
	}
}

// TestMissingStore opens what was never made.
func TestMissingStore(t *testing.T) {
	openURL(t, freshURL(t)) // the schema is there
	if _, err := objects.Open(t.Context(), freshURL(t), objects.Options{}); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("a repo that is not there: %v", err)
	}
	u, err := url.Parse(freshURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/nowhere"
	u.User = url.UserPassword(u.User.Username(), "s3cret")
	_, err = objects.Open(t.Context(), u.String(), objects.Options{Create: true})
	if !errors.Is(err, objects.ErrNotFound) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a database that is not there: %v", err)
	}
	u.RawQuery = ""
	u.Host = "127.0.0.1:1"
	_, err = objects.Open(t.Context(), u.String(), objects.Options{Wait: time.Millisecond})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a server that is not there: %v", err)
	}
}

// TestReadOnlyStore reads and does not write.
func TestReadOnlyStore(t *testing.T) {
	address := freshURL(t)
	commits, _ := grow(t, openURL(t, address), "refs/heads/main", "main", 3, 3)
	s, err := objects.Open(t.Context(), address, objects.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := increment(t.Context(), s, "refs/heads/main", "me"); !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	if n, err := drain(s.Chain(t.Context(), commits[2].ID, objects.ChainOptions{})); n != 3 || err != nil {
		t.Errorf("%d commits, %v", n, err)
	}
}
