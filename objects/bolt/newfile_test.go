package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// TestNewFileStaysOutOfMemory counts how much of the memory map of a file that gc writes is in
// memory once the index was made of the heads of its packs: bbolt keeps a page there for each that
// it reads, for as long as the file is open.
func TestNewFileStaysOutOfMemory(t *testing.T) {
	s, path := fresh(t)
	f := &newFile{repack: true}
	t.Cleanup(f.discard)
	if err := f.create(inner(t, s), path, journal.Binding{Generation: 1}); err != nil {
		t.Fatal(err)
	}
	const packs = 32
	for i := range packs {
		var list []objects.Object
		for k := range maxPackObjects {
			list = append(list, object(fmt.Sprint(i, k)))
		}
		if err := f.addObjects(list); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.indexAndSync(); err != nil {
		t.Fatal(err)
	}
	heads := int64(packs * maxPackObjects * idSize)
	if info, err := os.Stat(f.path); err != nil || info.Size() < heads {
		t.Fatalf("the file has %d bytes, %v", info.Size(), err)
	}
	if n := residentOf(t, f.path); n == 0 || n > heads/4 {
		t.Errorf("%d bytes of the file are in memory, and its heads have %d", n, heads)
	}
}

// residentOf returns how many bytes of the maps of a file this process has in memory.
func residentOf(t *testing.T, path string) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	mapped := false
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		if strings.Contains(name, "-") { // the addresses of the next map
			mapped = strings.HasSuffix(strings.TrimSpace(line), "/"+filepath.Base(path))
		}
		var kB int64
		if _, err := fmt.Sscan(rest, &kB); err == nil && mapped && name == "Rss" {
			n += kB << 10
		}
	}
	return n
}
