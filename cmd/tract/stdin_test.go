//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInterruptedWhileItWaitsForWords stops commands that wait for words that do not
// come: they end at once, and what was said so far is not committed.
func TestInterruptedWhileItWaitsForWords(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	for _, args := range [][]string{{"user", "-"}, {"assistant"}, {"decode", "-"}, {"import", "-", "--as", "x"}, {"hash-object", "-"}} {
		c := exec.CommandContext(t.Context(), "tract", append(args, "--dir", dir)...)
		var said strings.Builder
		c.Stderr = &said
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdin = in
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
		// A pipe that is full and takes more is one that somebody reads: the command waits.
		if _, err := io.WriteString(out, `{"a":"`+strings.Repeat("x", 1<<17)); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != codeInterrupted || !strings.Contains(said.String(), "interrupted\ntract: hint: ") {
			t.Errorf("%v ended with %v: %s", args, err, &said)
		}
		_ = out.Close()
	}
	command(t, codeNotFound, "log", "--dir", dir)
}
