package tract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documentedName matches a doc comment that begins with an identifier and a verb, such as "openFiles
// opens": a word in lower case, or one with a capital after a small letter.
var documentedName = regexp.MustCompile(`^([a-z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*) (?:has|is|are|[a-z]+s)\b`)

// TestDocCommentsNameWhatTheyDocument: a doc comment that begins as "X returns" stands above X. A
// rename that leaves the comment behind is found here.
func TestDocCommentsNameWhatTheyDocument(t *testing.T) {
	files, found := token.NewFileSet(), 0
	check := func(at token.Pos, name string, doc *ast.CommentGroup) {
		if m := documentedName.FindStringSubmatch(doc.Text()); m != nil {
			if found++; m[1] != name {
				t.Errorf("%s: the doc comment of %s is about %s", files.Position(at), name, m[1])
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				check(decl.Pos(), decl.Name.Name, decl.Doc)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok && spec.Doc != nil {
						check(spec.Pos(), spec.Name.Name, spec.Doc)
					} else if ok && len(decl.Specs) == 1 {
						check(spec.Pos(), spec.Name.Name, decl.Doc)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 1000 {
		t.Errorf("%d doc comments that name what they document: the test does not see the module", found)
	}
}
