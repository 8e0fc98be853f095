package main

import (
	"bytes"
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
