//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fifo makes a FIFO that nobody writes into.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readers is the commands that read a file.
func readers(path, dir string) [][]string {
	tools := []string{"generate", "--dry-run", "--provider", "chat", "--base-url", "http://127.0.0.1:1", "--model", "m", "--tools", path}
	var list [][]string
	for _, args := range [][]string{
		{"import", path, "--as", "x"},
		{"user", "-F", path},
		{"commit", "--kind", "file", "--file", path},
		{"chat", "Look.", "-a", path},
		{"decode", path},
		{"hash-object", "-F", path},
		tools,
	} {
		list = append(list, append(slices.Clone(args), "--dir", dir))
	}
	return list
}

// TestInterruptWhileOpeningFIFO: to open a FIFO that nobody writes into takes until somebody
// does. A person can end that.
func TestInterruptWhileOpeningFIFO(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &importRun{app: newApp(strings.NewReader(""), io.Discard, io.Discard)}
	if err := m.importFile(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("import: %v", err)
	}
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Hello?", "--dir", dir)
	for _, args := range readers(path, dir) {
		if args[0] == "import" || args[0] == "chat" {
			continue // these look sooner whether they are to go on
		}
		var out, said strings.Builder
		code := run(ctx, args, strings.NewReader(""), &out, &said)
		if code != codeInterrupted || out.Len() > 0 || !strings.Contains(said.String(), "open "+path+": interrupted\ntract: hint: ") {
			t.Errorf("%q ended with %d: %s%s", args, code, &out, &said)
		}
	}
}

// TestFileOpenedAfterInterruptIsClosed is closed when it can be opened after all.
func TestFileOpenedAfterInterruptIsClosed(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := openFile(ctx, path); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the one who opens it
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for err == nil { // until nobody has it open
		_, err = out.WriteString("words")
	}
	if !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}

// TestInterruptWhileReadingFIFO stops commands that read a file into which a
// program writes nothing: the first signal ends them.
func TestInterruptWhileReadingFIFO(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Hello?", "--dir", dir)
	before, _ := command(t, codeOK, "log", "--all", "--dir", dir)
	path := fifo(t)
	for i, args := range readers(path, dir) {
		c := exec.CommandContext(t.Context(), "tract", args...)
		var said strings.Builder
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		out, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the one who reads
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[i%2]); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != codeInterrupted || !strings.Contains(said.String(), "interrupted\ntract: hint: ") {
			t.Errorf("%q ended with %v: %s", args, err, &said)
		}
		_ = out.Close()
	}
	if after, _ := command(t, codeOK, "log", "--all", "--dir", dir); after != before {
		t.Errorf("before %s after %s", before, after)
	}
}

// TestReadFIFOWhileItIsWritten is read like any other.
func TestReadFIFOWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	path := fifo(t)
	wrote := make(chan error, 1)
	go func() {
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = io.WriteString(out, `[{"role":"user","content":"Imported?"},{"role":"assistant","content":"Yes."}]`)
			err = errors.Join(err, out.Close())
		}
		wrote <- err
	}()
	out, _ := command(t, codeOK, "import", path, "--as", "x", "--dir", dir)
	if err := <-wrote; err != nil || !strings.Contains(out, "2 of 2 blocks added") {
		t.Errorf("%v, %s", err, out)
	}
}
