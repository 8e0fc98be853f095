package bolt

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
)

// TestNewFileOfARunningSweepIsNoLeftover has another program remove leftovers while a sweep
// writes its new file, which stays; and if somebody removes that all the same, the store does.
func TestNewFileOfARunningSweepIsNoLeftover(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 20)
	in := idle(t, s)
	part := halfSwept(t, in)
	removeLeftovers(path, true)
	if err := part.replace(); err != nil {
		t.Errorf("a file that is locked was taken away: %v", err)
	}
	wantClean(t, path)
	part = halfSwept(t, in)
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
