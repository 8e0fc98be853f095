package bolt

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
)

// TestNewFileThatIsTakenForLeft takes the file that a sweep makes away in a moment in which
// nobody has it locked, as another one that begins then may.
func TestNewFileThatIsTakenForLeft(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 20)
	in := inner(t, s)
	var c newFile
	if err := c.createBeside(path, formatPacked); err != nil {
		t.Fatal(err)
	}
	removeLeftovers(path, true)
	if err := c.check(); err != nil {
		t.Errorf("a file that is locked was taken away: %v", err)
	}
	c.discard()
	if err := c.open(); err != nil { // as if it had gone just before
		t.Fatal(err)
	}
	if err := c.check(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file with nothing in it is taken for the one that was made: %v", err)
	}
	c.discard()

	idle(t, s)
	part := halfSwept(t, in)
	if err := os.Remove(part.out.path); err != nil {
		t.Fatal(err)
	}
	if err := part.replace(); !errors.Is(err, errReplaced) || !errors.Is(err, objects.ErrBusy) {
		t.Errorf("the new file is gone: %v", err)
	}
	wantClean(t, path)
}

// TestLeftoversAreRemovedByTheNextWriter plants what killed processes leave: it is named,
// a reader lets it lie, and the first write removes it, but not a file that is locked.
func TestLeftoversAreRemovedByTheNextWriter(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/a", "a")
	_ = s.Close()
	left := []string{path + newSuffix + "123", path + newJournal + "456"}
	used := path + newSuffix + "789"
	for _, name := range append(left, used) {
		if err := os.WriteFile(name, []byte("half a file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(used, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if free, err := filelock.Lock(f, true, false); !free || err != nil {
		t.Fatal(free, err)
	}
	s = mustOpen(t, path, objects.Options{})
	if _, err := s.GetRefs(t.Context(), "refs/heads/a"); err != nil {
		t.Fatal(err)
	}
	got, err := inner(t, s).Leftovers(t.Context())
	if err != nil || !slices.Equal(got, left) {
		t.Errorf("leftovers: %v, %v; want %v", got, err, left)
	}
	apply(t, s, "refs/heads/b", "b")
	for _, name := range left {
		if exists(name) {
			t.Errorf("after a write %s is there", name)
		}
	}
	if !exists(used) {
		t.Error("a file that is locked was removed")
	}
}
