package tract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// switchesWithoutDefault are the functions with a switch over kinds of blocks that does not say what
// holds of all others, and why nothing has to.
var switchesWithoutDefault = map[string]string{
	"check.go leftOutToolWarnings":               "only calls and results are listed",
	"toolloop.go answeredCallsNotInDrafts":       "only calls and results are paired",
	"toolloop.go findCalls":                      "only calls and results are paired",
	"toolloop.go checkAndNameResults":            "only calls and results are paired",
	"compile/messages.go appendBlock":            "only results are sorted, by their calls",
	"compile/tools.go pendingCalls":              "only calls and results are paired",
	"diff/similarity.go textOrToolName":          "others have no name",
	"format/jsonreply.go blockTypeInDecodeJSON":  "what no model says counts as text",
	"format/prompt.go heading":                   "the role and the kind are there already",
	"format/summary.go unsanitizedSummary":       "the first line of String follows",
	"inspect/grep.go textOf":                     "String of the block follows",
	"internal/importers/messages.go chainedHash": "only calls and results tie messages together",
	"cmd/tract/commit.go readBlock":              "a refusal follows",

	"internal/reconcile/plan.go Add":   "only calls and results have ids of calls",
	"internal/reconcile/key.go unitOf": "what no dialect sends does not come back from a client",
}

// TestEverySwitchOverKindsHasADefault: a switch over the types of blocks, or over
// kinds, has a default, or is one of switchesWithoutDefault. In package content the kinds are methods,
// which the compiler asks for. Of llm/providers and the dialects in internal/llm, TestEveryBlockIsSentOrReported holds what is
// sent, and what is read makes blocks of known kinds only.
func TestEverySwitchOverKindsHasADefault(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if d != nil && d.IsDir() && (path == "llm/providers" || path == "internal/llm" || strings.HasPrefix(path, ".") && path != ".") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if place := path + " " + f.Name.Name; tellsSomeKindsApart(n) {
					if seen[place] = true; switchesWithoutDefault[place] == "" {
						t.Errorf("%s: a switch over kinds of blocks without a default: say there, or in switchesWithoutDefault, what holds of all others", place)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range switchesWithoutDefault {
		if !seen[place] {
			t.Errorf("%s: there is no such switch any more", place)
		}
	}
}

// tellsSomeKindsApart reports whether a node is a switch over kinds of blocks without a default.
func tellsSomeKindsApart(n ast.Node) bool {
	var body *ast.BlockStmt
	switch n := n.(type) {
	case *ast.TypeSwitchStmt:
		body = n.Body
	case *ast.SwitchStmt:
		body = n.Body
	default:
		return false
	}
	named := false
	for _, s := range body.List {
		list := s.(*ast.CaseClause).List
		if list == nil {
			return false
		}
		named = named || slices.ContainsFunc(list, isKindOfBlock)
	}
	return named
}

// isKindOfBlock reports whether an expression is a kind or a type of blocks.
func isKindOfBlock(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "content" && (strings.HasPrefix(sel.Sel.Name, "Kind") ||
		slices.Contains([]string{"Text", "Reasoning", "ToolCall", "ToolResult", "Media", "Native"}, sel.Sel.Name))
}

// TestAddingAKindPageIsCurrent follows docs/adding-a-kind.md in a copy of the module, with
// nothing that the page does not say, and runs the tests that look at every kind; those of
// the command line, which take building all of it, only with TRACT_TORTURE=1.
func TestAddingAKindPageIsCurrent(t *testing.T) {
	t.Parallel()
	all := os.Getenv("TRACT_TORTURE") != ""
	page, err := os.ReadFile("docs/adding-a-kind.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, suffix := range []string{".go", ".md", ".mod", ".sum", ".json", ".sql"} {
		for path, text := range tree(t, suffix) {
			write(t, filepath.Join(dir, path), text)
		}
	}
	part := func(before string) string {
		_, rest, _ := strings.Cut(string(page), before)
		_, rest, _ = strings.Cut(rest, "```")
		_, rest, _ = strings.Cut(rest, "\n")
		code, _, found := strings.Cut(rest, "```")
		if !found {
			t.Fatalf("the page has nothing after %q", before)
		}
		return code
	}
	insert := func(name, after, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil || strings.Count(string(b), after) != 1 {
			t.Fatalf("%s has not one %q: %v", name, after, err)
		}
		write(t, path, strings.Replace(string(b), after, after+text, 1))
	}
	write(t, filepath.Join(dir, "content/decision.go"), part("Create `content/decision.go`:"))
	insert("content/content_test.go", "return map[string]Block{\n", part("to `samples` in"))
	insert("content/rewrite_test.go", "blocks := []Block{\n", part("to `blocks` in `content/rewrite_test.go`"))
	insert("content/remains_test.go", "blocks := []Block{\n", part("to `blocks` in `content/remains_test.go`"))
	insert("docs/format.md", "| 12 | native | assistant | normal | 16 the item's JSON, as it came |\n", part("Add a row to the table of kinds"))
	insert("docs/json.md", "`summary`, `native`", ", `decision`")

	vectors := filepath.Join(dir, "testdata/vectors/content.json")
	before, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	for command := range strings.Lines(part("## 4. What is generated")) {
		if all || !strings.Contains(command, "./cmd/tract") {
			in(t, dir, strings.Fields(command)...)
		}
	}
	after, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(before)) {
		if !strings.Contains(string(after), strings.TrimRight(line, ",\n")) {
			t.Errorf("a vector changed: %s", line)
		}
	}
	_, tested, _ := strings.Cut(string(page), "## 5. The tests")
	tested, _, _ = strings.Cut(tested, "\n## ")
	names, packages := []string{}, []string{"./content", "./llm/providers"}
	if all {
		names, packages = append(names, "TestDocsCLIIsCurrent"), append(packages, "./cmd/tract")
	}
	for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(tested, -1) {
		if name := m[1]; all || name != "TestEveryKindThroughEveryCommand" {
			names = append(names, name)
		}
	}
	out := in(t, dir, slices.Concat([]string{"go", "test", "-vet=off", "-v", "-run", "^(" + strings.Join(names, "|") + ")$"}, packages)...)
	if all {
		names = append(names, "TestEveryKindThroughEveryCommand/decision")
	}
	for _, name := range names {
		if !strings.Contains(out, "--- PASS: "+name+" ") {
			t.Errorf("%s was not run:\n%s", name, out)
		}
	}
}

// in runs a command in a folder, and returns what it prints.
func in(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
