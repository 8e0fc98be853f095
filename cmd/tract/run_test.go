package main

import (
	"strings"
	"testing"
)

// TestHintsQuoteForShell: an id or a name stands in a hint as a shell reads it.
func TestHintsQuoteForShell(t *testing.T) {
	for given, want := range map[string]string{
		"call_1":              "call_1",
		"":                    "''",
		"$(touch x); y":       "'$(touch x); y'",
		"it's":                `'it'\''s'`,
		"a\nb\t'\\\x1b\u009b": `$'a\012b\011\047\134\033\302\233'`,
		"خواهم می\u200cخواهم": "'خواهم می\u200cخواهم'",
	} {
		if got := shellQuote(given); got != want {
			t.Errorf("shellWord(%+q) = %+q, want %+q", given, got, want)
		}
	}
	for id, want := range map[string]string{
		"call_1":   "tract tool-result call_1 -F -",
		"a b":      "tract tool-result 'a b' -F -",
		"--dir=/x": "tract tool-result -F - -- '--dir=/x'",
	} {
		if got := toolResultCommand(id, "-F -"); got != want {
			t.Errorf("the command for %q is %s, want %s", id, got, want)
		}
	}
	offered := []string{"call_1\tlook", "a\x1b[31m\tlook", "b\tlook\u009b2J", "c\u202e", "d"}
	if got, want := strings.Join(printableNames(offered), " "), "call_1\tlook b\tlook\\u009b2J d"; got != want {
		t.Errorf("a completion offers %+q, want %+q", got, want)
	}
}
