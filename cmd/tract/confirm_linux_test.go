package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestIrreversibleCommandsAsk: at a terminal a purge asks first, and does nothing
// without a yes.
func TestIrreversibleCommandsAsk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "tract", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", args, out)
		}
		return string(out)
	}
	run("init", dir)
	run("user", "hunter2")
	for _, answer := range []string{"n\n", "\n", "\x04"} {
		c := onTerminal(t, dir, "purge", "HEAD")
		if asked := c.until("[y/N] "); !strings.Contains(asked, "Permanently purge the content of 1 block, ") || !strings.Contains(asked, "cannot be undone") {
			t.Errorf("it asks %q", asked)
		}
		c.keys(answer)
		for b := range c.read {
			c.said.Write(b)
		}
		var exit *exec.ExitError
		if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != codeNo || !strings.Contains(c.said.String(), "nothing was changed") {
			t.Errorf("after %q: %v, %q", answer, err, c.said.String())
		}
		if log := run("log"); !strings.Contains(log, "hunter2") {
			t.Errorf("after %q: %s", answer, log)
		}
	}
	c := onTerminal(t, dir, "purge", "HEAD")
	c.until("[y/N] ")
	c.keys("y\n")
	if said := c.ended(); !strings.Contains(said, "1 block, ") {
		t.Errorf("it says %q", said)
	}
	if log := run("log"); strings.Contains(log, "hunter2") {
		t.Errorf("it is still there: %s", log)
	}
	if said := onTerminal(t, dir, "purge", "--reasoning").ended(); strings.Contains(said, "[y/N]") || !strings.Contains(said, "0 blocks") {
		t.Errorf("there was nothing to ask: %q", said)
	}
}

// TestMissingPager shows what was asked for without it.
func TestMissingPager(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Hello there", "--dir", dir)
	command(t, codeOK, "config", "set", "core.pager", "nosuch-pager -x", "--dir", dir)
	c := onTerminal(t, dir, "log", "--oneline")
	if said := c.ended(); !strings.Contains(said, "Hello there") || !strings.Contains(said, "not found") {
		t.Errorf("on the terminal is %q", said)
	}
}
