package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// TestAmbiguousAbbreviationIsRefused asks for a commit by four digits that two ids begin with:
// it is refused with both named, and with more digits each is found.
func TestAmbiguousAbbreviationIsRefused(t *testing.T) {
	dir := t.TempDir()
	begin, one, other := twins(t, dir)
	_, said := command(t, codeNotFound, "show", begin, "--dir", dir)
	for _, want := range []string{"is ambiguous", one[:8], other[:8], "tract: hint: give more digits"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
	out, said := command(t, codeNotFound, "rev-parse", begin, "--json", "--dir", dir)
	if !strings.Contains(said, `"kind":"ambiguous"`) || out != "" {
		t.Errorf("stdout %q, stderr %s", out, said)
	}
	for _, id := range []string{one, other} {
		if out, _ := command(t, codeOK, "rev-parse", id[:16], "--dir", dir); out != id+"\n" {
			t.Errorf("rev-parse %s is %s", id[:16], out)
		}
	}
}

// twins commits until two ids begin with the same four digits.
func twins(t *testing.T, dir string) (begin, one, other string) {
	t.Helper()
	repo, err := tract.Open(t.Context(), filepath.Join(dir, folder), tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	seen := map[string]string{}
	for n := 0; ; n += 200 {
		var blocks []content.Block
		for i := range 200 {
			blocks = append(blocks, content.User(fmt.Sprint("block ", n+i)))
		}
		ids, err := repo.Branch(firstBranch).Append(t.Context(), blocks, tract.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			digits := id.String()
			if was, ok := seen[digits[:4]]; ok && was[:8] != digits[:8] {
				return digits[:4], was, digits
			}
			seen[digits[:4]] = digits
		}
	}
}
