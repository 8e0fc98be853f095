package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// large makes files of settings whose size grows with n.
var large = map[string]func(n int) string{
	"settings": func(n int) string {
		var b strings.Builder
		b.WriteString("[reasoning.budgets]\n")
		for i := range n {
			fmt.Fprintf(&b, "m%d = 1\n", i)
		}
		return b.String()
	},
	"unknown settings": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "reasoning.efort%d = 1\n", i)
		}
		return b.String()
	},
	"tables": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "[reasoning.budgets%d]\n", i)
		}
		return b.String()
	},
	"an inline table": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d = 1, ", i)
		}
		return "request.extra = {" + strings.TrimSuffix(b.String(), ", ") + "}\n"
	},
	"an array of tables": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{k%d = 1}, ", i)
		}
		return "request.extra.a = [" + strings.TrimSuffix(b.String(), ", ") + "]\n"
	},
	"stores": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "store.'/%d'.model = 'm'\n", i)
		}
		return b.String()
	},
}

// TestMemoryIsLinearInTheFile measures the memory that reading and changing a settings file takes,
// which does not depend on the load of the machine: a file of four times the size takes about four
// times as much.
func TestMemoryIsLinearInTheFile(t *testing.T) {
	key, err := Find("model")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range large {
		work := func(n int) uint64 {
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(path, []byte(text(n)), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = Load(Sources{Global: File{Path: path}})
			_, _ = Load(Sources{Repo: File{Path: path, Folder: true}})
			_, _ = applyEdits([]byte(text(n)), nil, []edit{{name: key.Name, set: true, key: key, value: "m"}})
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		work(10)
		small, big := work(200), work(800)
		if big > 6*small {
			t.Errorf("%s: %d bytes for 200, %d for 800", name, small, big)
		}
	}
}

// TestTooLargeIsRefused: what would take longer than a reader waits is refused before it
// is looked at, wherever it stands.
func TestTooLargeIsRefused(t *testing.T) {
	deep := strings.Repeat("a.", 100_000) + "a"
	texts := map[string]string{
		"a key of many parts":       deep + " = 1\n",
		"a table of many parts":     "[" + deep + "]\n",
		"a key in a table":          "[" + strings.Repeat("a.", maxDepth) + "a]\nb = 1\n",
		"tables in tables":          "a = " + strings.Repeat("{a = ", 5000) + "1" + strings.Repeat("}", 5000) + "\n",
		"arrays in arrays":          "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"arrays in arrays for ever": "a = " + strings.Repeat("[", 500_000),
		"tables in arrays":          "a = " + strings.Repeat("[{a = ", 3000) + "1" + strings.Repeat("}]", 3000) + "\n",
	}
	texts["a key as long as a file"] = strings.Repeat("a.", maxFile/2-2) + "a=1"
	for name, text := range large {
		texts["many of "+name] = text(maxKeys + 1)
	}
	for name, text := range texts {
		for _, trusted := range []bool{true, false} {
			if _, err := parseSettings([]byte(text), nil, trusted); err == nil || len(err.Error()) > 500 {
				t.Errorf("%s, trusted %t: %.200v", name, trusted, err)
			}
		}
		if _, err := applyEdits([]byte(text), nil, []edit{{name: "a"}}); err == nil {
			t.Errorf("%s: it was changed", name)
		}
	}
	if _, err := applyEdits(nil, nil, make([]edit, maxEdits+1)); err == nil {
		t.Error("too many changes: they were made")
	}
	for name, text := range large {
		if _, err := decodeSortedValues([]byte(text(maxKeys - 10))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLongNamesAreNotCompared: the name that may have been meant is looked for only
// where somebody can have meant one, and errors stay short.
func TestLongNamesAreNotCompared(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 1<<20), strings.Repeat("a.", 1<<19), "request.headers." + strings.Repeat("ü", 1<<19)} {
		_, err := Find(name)
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%.40s: %.300v", name, err)
		}
	}
}
