//go:build linux && (amd64 || arm64)

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// resident is how many pages of a file are in the page cache.
func resident(t *testing.T, path string) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(m) }() // nothing was written
	pages := make([]byte, (len(m)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// TestADroppedFileIsCold: else what is called cold would be warm.
func TestADroppedFileIsCold(t *testing.T) {
	dir := t.TempDir()
	const inMemory = 0x01021994 // TMPFS_MAGIC: nothing can be dropped there
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type == inMemory {
		t.Skip("the temporary folder is in memory")
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, path); n == 0 {
		t.Fatal("a file that was just written is not in the page cache: nothing can be shown")
	}
	if err := evictFolder(dir); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, path); n > 0 {
		t.Errorf("%d pages are still in the page cache", n)
	}
}
