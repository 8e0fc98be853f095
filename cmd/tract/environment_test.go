package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm/providers"
)

// byName are the functions that look variables up whose names settings and providers
// list.
var byName = []string{"apiKey", "keysInEnvironment"}

// TestHelpListsEveryVariable compares the topic environment of the help with what the
// source reads.
func TestHelpListsEveryVariable(t *testing.T) {
	listed := map[string]string{}
	for _, group := range environment() {
		for _, v := range group.list {
			if listed[v.name] != "" || v.about == "" {
				t.Errorf("%s is listed twice, or says nothing", v.name)
			}
			listed[v.name] = group.title
		}
	}
	var read []string
	literals := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bench" || d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || d.Name() == "environment.go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			read = append(read, variablesIn(t, path, decl, literals)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range providers.Names() {
		p, _ := providers.Lookup(name)
		read = append(read, p.KeyEnv...)
	}
	_, err = settings.Load(settings.Sources{Lookup: func(name string) (string, bool) {
		read = append(read, name)
		return "", false
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(read) < 60 {
		t.Fatalf("only %d variables are found in the source", len(read))
	}
	for _, name := range read {
		if listed[name] == "" {
			t.Errorf("tract help environment does not list %s", name)
		}
	}
	for name, title := range listed {
		if !slices.Contains(read, name) && !literals[name] && title != "Read by the Go libraries" {
			t.Errorf("tract help environment lists %s, which nothing reads", name)
		}
	}
}

// variablesIn is the variables that a declaration reads by name. It notes every string.
func variablesIn(t *testing.T, path string, decl ast.Decl, literals map[string]bool) (names []string) {
	t.Helper()
	within := ""
	if f, ok := decl.(*ast.FuncDecl); ok {
		within = f.Name.Name
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				literals[text] = true
			}
		case *ast.CallExpr:
			of, ok := n.Fun.(*ast.SelectorExpr)
			lookup, local := n.Fun.(*ast.Ident)
			fromOS := ok && (of.Sel.Name == "Getenv" || of.Sel.Name == "LookupEnv")
			if ok && of.Sel.Name == "ExpandEnv" {
				t.Errorf("%s: %s expands variables, which the help cannot list", path, within)
			}
			if !fromOS && !(local && lookup.Name == "lookup" && strings.HasSuffix(path, "load.go")) {
				return true
			}
			if lit, ok := n.Args[0].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(lit.Value)
				names = append(names, name)
			} else if fromOS && !slices.Contains(byName, within) {
				t.Errorf("%s: %s reads a variable whose name is not written there", path, within)
			}
		}
		return true
	})
	return names
}
