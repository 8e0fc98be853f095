package bolt

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tract-vcs/tract/objects"
)

// dropped takes the file of a store out of memory, and gives it.
func dropped(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || inMemory(f, info.Size()/2) {
		t.Skip("a file stays in memory here")
	}
	return f
}

// TestWhatIsExpectedIsReadBeforehand expects a quarter of a file, for which none of it is
// read, and all of it.
func TestWhatIsExpectedIsReadBeforehand(t *testing.T) {
	path, m := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	h := walked(t, s, m.tip)
	f := dropped(t, path)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	last := info.Size() - 1
	var little pulling
	if err := inner(t, s).view(t.Context(), "read", func(l *look) error { return little.begin(l, last/4) }); err != nil || little.file != nil {
		t.Errorf("for a quarter of it it is read, %v", err)
	}
	s.(objects.Bulk).Expect(last)(t.Context())
	for at := int64(0); at <= last; at += 4 << 10 {
		if !inMemory(f, at) {
			t.Fatalf("byte %d of %d was not read", at, last)
		}
	}
	got, _, _ := h.load(t, s)
	m.wantAll(t, h, got)
	if inner(t, s).ahead.Load() {
		t.Error("it is said to go on")
	}
}

// TestAFileOfWhichSomeIsInMemory is read like one of which nothing is: its beginning and its
// middle say nothing of the end.
func TestAFileOfWhichSomeIsInMemory(t *testing.T) {
	path, _ := large(t, 4000)
	f := dropped(t, path)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	if !mostlyInMemory(f, info.Size()) {
		t.Fatal("what was just read is said not to be in memory")
	}
	end := info.Size() * 9 / 16
	if err := unix.Fadvise(int(f.Fd()), end, info.Size()-end, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if mostlyInMemory(f, info.Size()) {
		t.Error("what lacks its end is said to be in memory")
	}
}
