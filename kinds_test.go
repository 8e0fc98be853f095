package tract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// someKinds are the functions with a switch over kinds of blocks that does not say what
// holds of all others, and why nothing has to.
var someKinds = map[string]string{
	"append.go isEmpty":             "a block of another kind is never refused as empty",
	"grep.go wordsOf":               "String of the block follows",
	"compile/prompt.go say":         "only results are sorted, by their calls",
	"compile/summary.go callID":     "only calls and results have one",
	"compile/tools.go pending":      "only calls and results are paired",
	"diff/alike.go name":            "others have no name",
	"diff/alike.go id":              "only calls and results have one",
	"format/jsonreply.go blockName": "what no model says counts as text",
	"format/prompt.go heading":      "the role and the kind are there already",
	"format/summary.go gist":        "the first line of String follows",
	"importer/messages.go chained":  "only calls and results tie messages together",
	"record/key.go unitOf":          "what no dialect sends does not come back from a client",
	"cmd/tract/commit.go blockOf":   "a refusal follows",
}

// TestEveryPlaceThatTellsKindsApartIsComplete: a switch over the types of blocks, or over
// kinds, has a default, or is one of someKinds. In package content the kinds are methods,
// which the compiler asks for. Of llm/providers, TestEveryBlockIsSentOrSaid holds what is
// sent, and what is read makes blocks of known kinds only.
func TestEveryPlaceThatTellsKindsApartIsComplete(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if d != nil && d.IsDir() && (path == "llm/providers" || strings.HasPrefix(path, ".") && path != ".") {
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
					if seen[place] = true; someKinds[place] == "" {
						t.Errorf("%s: a switch over kinds of blocks without a default: say there, or in someKinds, what holds of all others", place)
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
	for place := range someKinds {
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
