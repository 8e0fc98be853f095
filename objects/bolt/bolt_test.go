package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// roleEnv makes the test binary play a role instead of testing: one that needs a
// process of its own.
const roleEnv = "TRACT_BOLT_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"write": roleWrite, "kill": roleKill, "create": roleCreate, "hold": roleHold, "flood": roleFlood, "sweep": roleSweep, "crash": roleCrash, "again": roleAgain, "crowd": roleCrowd, "served": roleServed,
}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(roleEnv)]
	if !ok {
		os.Exit(runInMemory(m))
	}
	faulttest.FilterCalls()
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runInMemory runs the tests with temporary files in memory, but for make torture, if the system
// has such a folder.
func runInMemory(m *testing.M) int {
	if dir := faulttest.MemoryDir(); dir != "" && !torture() {
		defer os.RemoveAll(dir)
		if err := os.Setenv("TMPDIR", dir); err != nil {
			return 1
		}
	}
	return m.Run()
}

// child is a process that plays a role.
func child(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestBoltConformance(t *testing.T) {
	paths := map[objects.Store]string{}
	objectstest.Run(t, objectstest.Engine{
		Open: func(t *testing.T) objects.Store {
			path := filepath.Join(t.TempDir(), "store")
			s := mustOpen(t, path, objects.Options{Create: true})
			paths[s] = path
			return s
		},
		OpenCopy: func(t *testing.T, dir string) objects.Store { return mustOpen(t, dir, objects.Options{}) },
		Reopen: func(t *testing.T, closed objects.Store) objects.Store {
			s := mustOpen(t, paths[closed], objects.Options{})
			paths[s] = paths[closed]
			return s
		},
	})
}

func mustOpen(t testing.TB, path string, o objects.Options) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fresh is a new store and the path of its file.
func fresh(t testing.TB) (objects.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	return mustOpen(t, dir, objects.Options{Create: true}), filepath.Join(dir, fileName)
}

// inner is the engine under the verifier.
func inner(t testing.TB, s objects.Store) *store {
	t.Helper()
	in, ok := objects.As[*store](s)
	if !ok {
		t.Fatal("not a store of this package")
	}
	return in
}

// idle waits until the last writer has closed its handle, which nobody waits for.
func idle(t testing.TB, s objects.Store) *store {
	t.Helper()
	in := inner(t, s)
	if err := in.await(t.Context(), func() bool { return in.openHandles == 0 && !in.leasing }); err != nil {
		t.Fatal(err)
	}
	return in
}

// writing is a handle that is open for writing, and a writer that nobody waits for.
func writing(t *testing.T, s *store) (*handle, *writer) {
	t.Helper()
	h, err := s.lockAndOpen(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return h, newWriter(s, h)
}

// mustCheckpoint writes the journal into the file, as a writer does from time to time.
func mustCheckpoint(t testing.TB, s objects.Store) {
	t.Helper()
	if err := tryCheckpoint(t, s); err != nil {
		t.Fatal(err)
	}
}

func TestOpenFindsTheFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct{ url, file string }{
		{".tract", ".tract/tract.db"},
		{"bolt:second", "second/tract.db"},
		{"deep/er/store", "deep/er/store/tract.db"},
		{"plain.db", "plain.db"},
		{filepath.Join(dir, "abs"), "abs/tract.db"},
	} {
		s := mustOpen(t, c.url, objects.Options{Create: true})
		apply(t, s, "refs/heads/main", "x")
		path, _, err := inner(t, s).Size(t.Context())
		if err != nil || path != filepath.Join(dir, c.file) {
			t.Errorf("%s lies in %s, %v; want %s", c.url, path, err, c.file)
		}
		again := mustOpen(t, path, objects.Options{Create: true}) // the file itself, which Create leaves alone
		if _, err := objects.Read(t.Context(), again, object("x").ID); err != nil {
			t.Errorf("%s, opened again: %v", path, err)
		}
	}
	if err := os.Mkdir("old.db", 0o700); err != nil { // a directory, whatever its name
		t.Fatal(err)
	}
	if path, err := databaseFile("old.db"); err != nil || path != filepath.Join(dir, "old.db", fileName) {
		t.Errorf("old.db: %s, %v", path, err)
	}
}

func TestOpenWhereThereIsNothing(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "none.db"), dir} {
		for _, o := range []objects.Options{{}, {ReadOnly: true}, {ReadOnly: true, Create: true}} {
			_, err := objects.Open(t.Context(), path, o)
			if !errors.Is(err, objects.ErrNotFound) || !strings.Contains(err.Error(), path) {
				t.Errorf("open %s: %v, want ErrNotFound with the path", path, err)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("opening what is not there has made %v, %v", left, err)
	}
	if _, err := objects.Open(t.Context(), "", objects.Options{Create: true}); err == nil {
		t.Error("a store without a path")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Open(t.Context(), filepath.Join(file, "below"), objects.Options{Create: true}); err == nil {
		t.Error("a store below a file")
	}
}

func TestStoreThatVanishes(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	idle(t, s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetRefs(t.Context(), "refs/heads/main"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if err := s.Apply(t.Context(), batch("refs/heads/b", "y")); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("apply: %v", err)
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	before := fileState(t, path)
	r := mustOpen(t, path, objects.Options{ReadOnly: true})
	if err := r.Apply(t.Context(), batch("refs/heads/b", "y")); !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("apply: %v", err)
	}
	err := r.Update(t.Context(), "refs/heads/b", func(objects.ID) (objects.Batch, error) {
		t.Error("f was called")
		return objects.Batch{}, nil
	})
	if !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("update: %v", err)
	}
	if ref, err := objects.ReadRef(t.Context(), r, "refs/heads/main"); err != nil || ref.Target != object("x").ID {
		t.Errorf("read: %+v, %v", ref, err)
	}
	if after := fileState(t, path); after != before {
		t.Errorf("reading changed the file from %s to %s", before, after)
	}
}

func fileState(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(info.Size(), info.ModTime())
}

func object(text string) objects.Object {
	return objects.New(objects.KindContent, nil, nil, []byte(text))
}

// batch creates a ref.
func batch(ref, text string) objects.Batch {
	o := object(text)
	return objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: ref, New: o.ID}}}
}

func apply(t testing.TB, s objects.Store, ref, text string) {
	t.Helper()
	if err := s.Apply(t.Context(), batch(ref, text)); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// names lists the files of a directory with their permissions.
func names(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	m := map[string]fs.FileMode{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = info.Mode()
	}
	return m
}
