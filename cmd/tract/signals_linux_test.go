package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestSignalEndsReadingCommand interrupts a log that nobody reads on from: it ends as any
// program does, which a shell reports as 130.
func TestSignalEndsReadingCommand(t *testing.T) {
	dir := t.TempDir()
	process(t, "init", dir)
	long := exec.CommandContext(t.Context(), "tract", "user", "-", "--dir", dir)
	long.Stdin = strings.NewReader(strings.Repeat("a line that is in the way\n", 100_000))
	if out, err := long.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log := exec.CommandContext(t.Context(), "tract", "log", "-p", "--dir", dir)
	out, err := log.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := log.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := log.Wait(); !errors.As(err, &ended) {
		t.Fatalf("it ended well: %v", err)
	}
	if how := ended.Sys().(syscall.WaitStatus); !how.Signaled() || how.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", ended)
	}
	process(t, "user", "the next command", "--dir", dir)
}
