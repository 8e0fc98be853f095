package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestImportOfFilesOfAllSizes: files for which room is made, those for which there is not
// enough, and those that need none, all come in, and the collector is as it was.
func TestImportOfFilesOfAllSizes(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	run := func(args ...string) string {
		t.Helper()
		var out, bad bytes.Buffer
		if code := newApp(strings.NewReader(""), &out, &bad).run(context.Background(), args); code != 0 {
			t.Fatalf("tract %q: %d, %s", args, code, &bad)
		}
		return out.String()
	}
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	run("init")
	words := strings.Repeat("words ", 700)
	for name, lines := range map[string]int{"small": 3, "middle": 400, "large": 2500} {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, `{"role":%q,"content":"%d %s"}`+"\n", []string{"user", "assistant"}[i%2], i, words)
		}
		if err := os.WriteFile(name+".jsonl", []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d of %d blocks added", lines, lines)
		if out := run("import", name+".jsonl"); !strings.Contains(out, want) {
			t.Errorf("%s: %q, want %q", name, out, want)
		}
		if percent := debug.SetGCPercent(77); percent != 77 {
			t.Errorf("%s: the collector is left at %d", name, percent)
		}
	}
	run("fsck")
}

// sized is what the system says of a file.
type sized int64

func (s sized) Size() int64        { return int64(s) }
func (s sized) Mode() fs.FileMode  { return 0 }
func (s sized) Name() string       { return "sized" }
func (s sized) ModTime() time.Time { return time.Time{} }
func (s sized) IsDir() bool        { return false }
func (s sized) Sys() any           { return nil }

// TestRoomForAFileOfAnySize: a file with holes may say that it has more bytes than there
// are on all disks. It is no file for which there is room, and the heap is not let grow
// as for one.
func TestRoomForAFileOfAnySize(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	for _, size := range []int64{importRoom, 1 << 60, 1 << 62, 900_000_000_000_000_000, math.MaxInt64} {
		makeRoom(sized(size))
		if percent := debug.SetGCPercent(77); percent != importGC {
			t.Errorf("a file of %d bytes lets the heap grow by %d%%", size, percent)
		}
	}
}

// TestTheFirstCollection of an import comes when three quarters of the room are used, and
// of a small file not at all; of a large one it comes as of one of any size.
func TestTheFirstCollection(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	for size, want := range map[int64]int{0: importGC, importWorth - 1: importGC, importWorth: 300, 6 << 20: 600, 14 << 20: 1200, 15 << 20: importGC} {
		makeRoom(sized(size))
		if percent := debug.SetGCPercent(77); percent != want {
			t.Errorf("a file of %d bytes lets the heap grow by %d%%, want %d", size, percent, want)
		}
	}
}
