package tract_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/importers"
)

// goldenLogs is what import reads, by name: what is recorded in internal/importers/testdata and
// in the shared folder, and arrays of messages with what is rare in them.
func goldenLogs(t *testing.T) map[string][]byte {
	t.Helper()
	logs := sessionLogs(t)
	files, err := filepath.Glob("internal/importers/testdata/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if logs[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, last := range map[string]string{
		"plain":     `{"role":"user","content":"the end"}`,
		"openai":    `{"role":"tool","tool_call_id":"call_1","content":"12 degrees"}`,
		"anthropic": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"12 degrees"}]}`,
		"responses": `{"type":"function_call_output","call_id":"call_1","output":"12 degrees"}`,
	} {
		var b bytes.Buffer
		for i := range 400 {
			said := fmt.Sprintf("words of %d \\u00e4 \\n and more, the password is hunter%d, AKIAQ7D%dPW3XK2MZLTN", i%77, i%5, 1000+i%3)
			switch role := []string{"user", "assistant"}[i%2]; {
			case i%29 == 3:
				fmt.Fprintf(&b, `{ "role": %q, "content": [ {"type": "text", "text": "%s"} ] }`+"\n\n", role, said)
			case i%31 == 5:
				fmt.Fprintf(&b, `{"role":%q,"content":"%s"}`+"\n", role, said) // and the next is of the same role
				fallthrough
			default:
				fmt.Fprintf(&b, `{"role":%q,"content":"%s"}`+"\n", role, said)
			}
		}
		b.WriteString(last)
		logs["made-"+name] = b.Bytes()
	}
	return logs
}

// TestImportedIDsAreStable checks the ids of imports against those of the first release: a source
// gives the same history everywhere and in every version. A tip that differs is a bug; never replace
// the list by new ids.
func TestImportedIDsAreStable(t *testing.T) {
	text, err := os.ReadFile("testdata/import-tips.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, tip, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = append(want[name], tip)
	}
	logs := goldenLogs(t)
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		at := func() time.Time { return time.UnixMilli(1_750_000_000_000) }
		repo := memory(t, tract.OpenOptions{Now: at, Author: "golden"})
		var cut *importers.LineError
		if _, err := repo.Import(t.Context(), foreign(logs[name]), tract.ImportOptions{}); err != nil && !errors.As(err, &cut) {
			t.Fatal(name, err)
		}
		var have []string
		for branch, commits := range branches(t, repo) {
			have = append(have, fmt.Sprintf("%s %d %s", branch, len(commits), commits[len(commits)-1].ID))
		}
		slices.Sort(have)
		if !slices.Equal(have, want[name]) {
			t.Errorf("%s gives\n%s %s\nwant\n%s", name, name, strings.Join(have, "\n"+name+" "), strings.Join(want[name], "\n"))
		}
	}
}
