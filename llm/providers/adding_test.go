package providers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/wire"
)

// TestAddingAProviderPageIsCurrent holds docs/adding-a-provider.md to the code: the
// files, the fields of its examples and the identifiers that it names exist.
func TestAddingAProviderPageIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "adding-a-provider.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, m := range regexp.MustCompile("`((?:internal/)?llm/[\\w/]+(?:\\.go)?)`").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
	fields := map[string]bool{}
	for _, v := range []any{wire.Dialect{}, wire.Quirks{}, Profile{}} {
		for i := range reflect.TypeOf(v).NumField() {
			fields[reflect.TypeOf(v).Field(i).Name] = true
		}
	}
	known := exportedNames(t, filepath.Join(root, "internal", "llm", "wire"), filepath.Join(root, "internal", "llm", "rawjson"), filepath.Join(root, "llm"), filepath.Join(root, "content"))
	found := 0
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile(`(?m)(?:^\t|[{,] ?)(\w+):\s`).FindAllStringSubmatch(block[1], -1) {
			if found++; !fields[m[1]] && !known[m[1]] {
				t.Errorf("the example sets %s, which is no field", m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d fields are in the examples", found)
	}
	for _, m := range regexp.MustCompile("`(?:\\w+\\.)?([A-Z]\\w+)(?:\\.([A-Z]\\w+))?`").FindAllStringSubmatch(page, -1) {
		for _, name := range m[1:] {
			if name != "" && !known[name] && !fields[name] && !strings.HasPrefix(name, "Test") && name != strings.ToUpper(name) {
				t.Errorf("the page names %s, which does not exist", m[0])
			}
		}
	}
}

// exportedNames has the exported names of packages, with those of methods and fields.
func exportedNames(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.IsExported() {
					names[id.Name] = true
				}
				return true
			})
		}
	}
	return names
}
