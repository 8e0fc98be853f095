package bolt

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestNewFileThatIsTakenForLeft takes the file that a sweep makes away in a moment in which
// nobody has it locked, as another one that begins then may.
func TestNewFileThatIsTakenForLeft(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 20)
	in := inner(t, s)
	var c compaction
	if err := c.begin(path, formatPacked); err != nil {
		t.Fatal(err)
	}
	removeLeft(path)
	if err := c.still(); err != nil {
		t.Errorf("a file that is locked was taken away: %v", err)
	}
	c.discard()
	if err := c.open(); err != nil { // as if it had gone just before
		t.Fatal(err)
	}
	if err := c.still(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file with nothing in it is taken for the one that was made: %v", err)
	}
	c.discard()

	w, part := halfSwept(t, in)
	if err := os.Remove(part.path); err != nil {
		t.Fatal(err)
	}
	if err := in.exchange(t.Context(), w, part); !errors.Is(err, errReplaced) || !errors.Is(err, objects.ErrBusy) {
		t.Errorf("the new file is gone: %v", err)
	}
	wantClean(t, path)
}
