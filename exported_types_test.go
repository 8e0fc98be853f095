package tract_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnOutsideModuleCanNameEveryType builds a program in a module of its own that names
// every exported type of the public packages, and every exported field of their structs,
// so that no result has a type which only this module can name. It needs no network.
func TestAnOutsideModuleCanNameEveryType(t *testing.T) {
	t.Parallel()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module, packages := list(t)
	program := program{imports: map[string]string{}}
	types := 0
	for _, p := range packages {
		path := "/" + p.ImportPath + "/"
		if !strings.Contains(path, "/internal/") && !strings.Contains(path, "/cmd/") {
			types += program.name(t, p.ImportPath, p.Dir)
		}
	}
	if types < 200 {
		t.Fatalf("%d types, which cannot be all", types)
	}
	folder := t.TempDir()
	ours, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(ours), "\n") // the same modules: they are in the cache
	requires = strings.Join(slices.DeleteFunc(strings.SplitAfter(requires, "\n"), func(line string) bool { return strings.HasPrefix(line, "tool ") }), "")
	mod := fmt.Sprintf("module example.org/outside\n%s\nrequire %s v0.0.0\n\nreplace %s => %s\n", requires, module, module, filepath.ToSlash(root))
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	code, err := format.Source(program.source())
	if err != nil {
		t.Fatalf("%v\n%s", err, program.source())
	}
	for name, text := range map[string][]byte{"go.mod": []byte(mod), "go.sum": sums, "outside.go": code} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiler := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", os.DevNull, ".")
	compiler.Dir = folder
	compiler.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := compiler.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// program is the code of the outside program.
type program struct {
	imports map[string]string // the names of packages, by path
	body    bytes.Buffer
}

// name names the types and fields of one package, and returns how many types it has.
func (p *program) name(t *testing.T, path, dir string) (types int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	as := fmt.Sprint("p", len(p.imports))
	for _, file := range files {
		if here, err := build.Default.MatchFile(dir, filepath.Base(file)); err != nil || !here || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if of := internalType(parsed, d); of != "" {
				t.Errorf("%s: an exported declaration has %s, which an outside module cannot name", file, of)
			}
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				of := spec.(*ast.TypeSpec)
				if !of.Name.IsExported() || of.TypeParams != nil {
					continue
				}
				types++
				p.imports[path] = as
				p.one(as+"."+of.Name.Name, of.Type)
			}
		}
	}
	return types
}

func (p *program) one(name string, of ast.Expr) {
	fmt.Fprintf(&p.body, "\tvar _ %s\n", name)
	fields, ok := of.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range fields.Fields.List {
		names := f.Names
		if len(names) == 0 { // embedded
			names = []*ast.Ident{embedded(f.Type)}
		}
		for _, field := range names {
			if field.IsExported() {
				fmt.Fprintf(&p.body, "\t_ = func(v *%s) any { return &v.%s }\n", name, field.Name)
			}
		}
	}
}

// internalType returns a type of an internal package in the exported part of a
// declaration; empty: there is none.
func internalType(file *ast.File, d ast.Decl) (found string) {
	internal := map[string]bool{}
	for _, imported := range file.Imports {
		path := strings.Trim(imported.Path.Value, `"`)
		if strings.Contains(path+"/", "/internal/") {
			name := path[strings.LastIndexByte(path, '/')+1:]
			if imported.Name != nil {
				name = imported.Name.Name
			}
			internal[name] = true
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.IsExported() && (n.Recv == nil || exported(n.Recv.List[0].Type))
		case *ast.TypeSpec:
			return n.Name.IsExported()
		case *ast.ValueSpec:
			return slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
		case *ast.BlockStmt: // of a function
			return false
		case *ast.Field: // parameters have names that do not matter
			return len(n.Names) == 0 || !isMember(d, n) || slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && internal[of.Name] && n.Sel.IsExported() {
				found = of.Name + "." + n.Sel.Name
			}
		}
		return true
	})
	return found
}

// exported reports whether a receiver is of an exported type.
func exported(of ast.Expr) bool { return embedded(of).IsExported() }

// isMember reports whether a field is one of a struct, or a method of an interface.
func isMember(d ast.Decl, field *ast.Field) (in bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			in = in || slices.Contains(n.Fields.List, field)
		case *ast.InterfaceType:
			in = in || slices.Contains(n.Methods.List, field)
		}
		return !in
	})
	return in
}

func embedded(of ast.Expr) *ast.Ident {
	switch of := of.(type) {
	case *ast.StarExpr:
		return embedded(of.X)
	case *ast.SelectorExpr:
		return of.Sel
	case *ast.Ident:
		return of
	}
	return ast.NewIdent("_")
}

func (p *program) source() []byte {
	var code bytes.Buffer
	fmt.Fprintln(&code, "package outside\n\nimport (")
	for path, as := range p.imports {
		fmt.Fprintf(&code, "\t%s %q\n", as, path)
	}
	fmt.Fprintf(&code, ")\n\nfunc _() {\n%s}\n", p.body.String())
	return code.Bytes()
}
