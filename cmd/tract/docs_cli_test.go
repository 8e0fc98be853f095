package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsCLIIsCurrent holds docs/cli to the words of --help.
func TestDocsCLIIsCurrent(t *testing.T) {
	dir := t.TempDir()
	var errOut bytes.Buffer
	if code := run(t.Context(), []string{"man", "--format", "markdown", "--dir", dir}, strings.NewReader(""), &bytes.Buffer{}, &errOut); code != codeOK {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	const committed = "../../docs/cli"
	fresh, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, page := range fresh {
		names[page.Name()] = true
		want, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(committed, page.Name()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/cli/%s is stale: make docs (%v)", page.Name(), err)
		}
	}
	old, err := os.ReadDir(committed)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range old {
		if !names[page.Name()] {
			t.Errorf("docs/cli/%s is of no command any more: remove it", page.Name())
		}
	}
}
