package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteReplacesWholeFiles: a file has its old content until the new one is complete,
// and no temporary file stays behind.
func TestWriteReplacesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "HEAD")
	read := func() string {
		b, _ := os.ReadFile(path)
		return string(b)
	}
	if err := Write(path, []byte("old"), nil); err != nil || read() != "old" {
		t.Fatalf("%q, %v", read(), err)
	}
	refused := errors.New("refused")
	if err := Write(path, []byte("new"), func() error { return refused }); !errors.Is(err, refused) || read() != "old" {
		t.Errorf("refused: %q, %v", read(), err)
	}
	if err := Write(path, []byte("new"), func() error {
		if read() != "old" {
			t.Error("the file changed too early")
		}
		return nil
	}); err != nil || read() != "new" {
		t.Errorf("%q, %v", read(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v (%v)", left, err)
	}
}
