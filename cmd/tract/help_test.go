package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// TestHelp holds every command to one form of help: a short line without a
// period, a long text and examples, and flags that say what they do.
func TestHelp(t *testing.T) {
	root := newRoot(newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
	seen := map[string]bool{}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			helpOf(t, cmd)
			for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
				flagHelp(t, strings.TrimRight(line, "\n"))
			}
		})
		for _, sub := range cmd.Commands() {
			if path := sub.CommandPath(); seen[path] {
				t.Errorf("%s is there twice", path)
			}
			seen[sub.CommandPath()] = true
			look(sub)
		}
	}
	look(root)
}

// countsBack is a command line that changes what it finds by counting commits: each pin
// shifts the numbers, so that what is found is another block.
var countsBack = regexp.MustCompile(`tract (annotate|pin|skip|edit|commit|purge|compress|expand|revert|reset|switch|checkout|branch|tag|cherry-pick)\b.*\b(HEAD|main)~`)

func helpOf(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	switch first := []rune(cmd.Short + " ")[0]; {
	case strings.TrimSpace(cmd.Short) == "" || !unicode.IsUpper(first):
		t.Errorf("the short help is %q: want a line that begins with a capital", cmd.Short)
	case strings.HasSuffix(cmd.Short, ".") || strings.Contains(cmd.Short, "\n"):
		t.Errorf("the short help is %q: want one line without a period", cmd.Short)
	}
	sub := cmd.HasParent() && cmd.Parent().HasParent()
	if !sub && cmd.HasParent() && cmd.GroupID == "" {
		t.Error("it is in no group of the help")
	}
	if !sub && (cmd.Long == "" || !strings.HasSuffix(cmd.Long, ".") && !strings.HasSuffix(cmd.Long, ")")) {
		t.Errorf("the long help does not end like a sentence: %q", cmd.Long)
	}
	if !sub && cmd.Example == "" {
		t.Error("there is no example")
	}
	for line := range strings.Lines(cmd.Example) {
		if !strings.HasPrefix(line, "  ") {
			t.Errorf("the example %q is not indented by two spaces", line)
		}
		if countsBack.MatchString(line) {
			t.Errorf("the example %q names a commit by a number, which the next one shifts", line)
		}
		if len([]rune(line)) > 110 {
			t.Errorf("the example %q is too long for a terminal", line)
		}
	}
	for line := range strings.Lines(cmd.Long) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 100 {
			t.Errorf("a line of the long help is too long for a terminal: %q", line)
		}
	}
}

// flagLine is a flag in the help: its name, perhaps what it takes, and its words.
var flagLine = regexp.MustCompile(`^ +(?:-\w, )?--(\S+)(?: \w+(?:\[="\S+"\])?)? {2,}(.+)$`)

func flagHelp(t *testing.T, line string) {
	t.Helper()
	m := flagLine.FindStringSubmatch(line)
	if m == nil {
		t.Errorf("a flag says nothing of what it does: %q", line)
		return
	}
	name, words := m[1], m[2]
	if first, _, _ := strings.Cut(words, " "); unicode.IsUpper([]rune(first)[0]) && first != strings.ToUpper(first) {
		t.Errorf("--%s: %q begins with a capital", name, words)
	}
	if strings.HasSuffix(words, ".") {
		t.Errorf("--%s: %q ends with a period", name, words)
	}
	if strings.ToLower(name) != name || strings.Contains(name, "_") {
		t.Errorf("--%s: want lower case with -", name)
	}
}
