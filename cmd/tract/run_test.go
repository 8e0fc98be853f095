package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestACommandIsFoundByItsName holds the names that commands are registered by to
// those that they have: a command line makes only those that it may name.
func TestACommandIsFoundByItsName(t *testing.T) {
	for _, c := range commands {
		if cmd := c.make(newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})); cmd.Name() != c.name || len(cmd.Aliases) > 0 {
			t.Errorf("%q is registered, and called by %q and %q", c.name, cmd.Name(), cmd.Aliases)
		}
	}
}

// TestCommandLinesMeanTheSame compares the program that is made for a command line
// with the whole one.
func TestCommandLinesMeanTheSame(t *testing.T) {
	for _, line := range []string{
		"", "log", "log -n 20", "-b log user hi", "--branch=log user hi", "--dir log", "-v log", "--json config set model log",
		"user log", "user -- log", "-- log", "--nothing log", "--nothing=1 log", "lgo", "lgo log", "-b", "-b log", "config nothing",
		"help log", "help", "--help log", "man log", "man", "completion bash", "__complete log ", "-bmain log", "bisect run tract log",
	} {
		args := strings.Fields(line)
		a := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
		want, wantRest, wantErr := newRoot(a, allCommands).Find(args)
		root := rootFor(a, args)
		got, rest, err := root.Find(args)
		if got.CommandPath() != want.CommandPath() || !slices.Equal(rest, wantRest) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q is %q with %q (%v), want %q with %q (%v)", line, got.CommandPath(), rest, err, want.CommandPath(), wantRest, wantErr)
		}
		if all := len(root.Commands()) >= len(commands); all != (got == root || got.Name() == "man") {
			t.Errorf("%q: %d commands were made", line, len(root.Commands()))
		}
	}
}
