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

// TestInterruptWhileReadingStdin stops commands that wait for words that do not
// come: they end at once, and what was said so far is not committed.
func TestInterruptWhileReadingStdin(t *testing.T) {
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

// TestPasteIsNotExecuted: a short paste goes into the line that is edited, where the terminal
// shows it; one that could control the terminal is named there.
func TestPasteIsNotExecuted(t *testing.T) {
	for text, shown := range map[string]string{
		"a word می\u200cخواهم": "a word می\u200cخواهم",
		"\u009b2J":             "[paste 1: 4 bytes, 1 lines]",
		"\u202eevil":           "[paste 1: 7 bytes, 1 lines]",
		"a\tb":                 "[paste 1: 3 bytes, 1 lines]",
		"\xff\ufffd":           "[paste 1: 4 bytes, 1 lines]",
	} {
		k := &keyReader{}
		if k.addPaste(text); string(k.ready) != shown {
			t.Errorf("a paste of %+q is shown as %+q, want %+q", text, k.ready, shown)
		}
	}
}
