package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// endless is a stdin that never ends; it counts what was taken.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.read += len(b)
	return len(b), nil
}

// TestTextOverLimitIsRefused gives a text that is longer than a block may be, in a file
// and through a pipe: it is refused with the limit named, before it fills the
// memory, and nothing is committed.
func TestTextOverLimitIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	path := filepath.Join(dir, "long.txt")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, args := range [][]string{
		{"user", "-F", path},
		{"commit", "--kind", "file", "--file", path},
		{"edit", "HEAD", "-F", path},
		{"hash-object", "-F", path},
	} {
		if args[0] == "edit" {
			command(t, codeOK, "user", "Hello", "--dir", dir)
		}
		_, said := command(t, codeNo, append(args, "--dir", dir)...)
		if !strings.Contains(said, "tract: error: read "+path) || !strings.Contains(said, "64 MiB") || !strings.Contains(said, "tract: hint: split it") {
			t.Errorf("%s: %s", args[0], said)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("refusing a file took %d MiB of memory", used>>20)
	}

	pipe := &endless{}
	var said bytes.Buffer
	if code := run(t.Context(), []string{"user", "-", "--dir", dir}, pipe, &bytes.Buffer{}, &said); code != codeNo {
		t.Errorf("exit code %d: %s", code, &said)
	}
	if pipe.read > content.MaxSize+1<<20 {
		t.Errorf("%d bytes were taken from a pipe that does not end", pipe.read)
	}
	if out, _ := command(t, codeOK, "log", "--oneline", "--dir", dir); strings.Count(out, "\n") != 1 {
		t.Errorf("the log is %s", out)
	}
}

// command runs a command line that has to end with an exit code.
func command(t *testing.T, code int, args ...string) (out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); got != code {
		t.Fatalf("tract %s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, &stderr)
	}
	return stdout.String(), stderr.String()
}
