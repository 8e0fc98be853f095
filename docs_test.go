package tract_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tree reads the files of the module whose names end so, by path.
func tree(t *testing.T, suffix string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, suffix) {
			b, err := os.ReadFile(path)
			files[path] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestPromisesNameTestsThatExist keeps docs/promises.md true: the functions it
// names are there, and so are the subtests of the conformance suite. The pages of docs/design
// name tests that exist, and engine.md functions and fields that do.
func TestPromisesNameTestsThatExist(t *testing.T) {
	promises, err := os.ReadFile("docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, code := range tree(t, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(code, -1) {
			functions[m[1]] = true
		}
	}
	suite := ""
	for path, code := range tree(t, ".go") {
		if strings.HasPrefix(filepath.ToSlash(path), "objects/objectstest/") {
			suite += code
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)\\w+|[A-Z]\\w+/[^`]+)`").FindAllStringSubmatch(string(promises), -1)
	if len(names) < 50 {
		t.Fatalf("%d tests are named, which cannot be all", len(names))
	}
	for _, m := range names {
		if !functions[m[1]] && !strings.Contains(suite, `"`+m[1]+`"`) {
			t.Errorf("docs/promises.md names %s, which does not exist", m[1])
		}
	}
	declared, named := map[string]bool{}, 0
	for path, code := range tree(t, ".go") {
		if path = filepath.ToSlash(path); strings.HasPrefix(path, "objects/") || strings.HasPrefix(path, "internal/") {
			for _, m := range regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)(\w+)`).FindAllStringSubmatch(code, -1) {
				declared[m[1]] = true
			}
		}
	}
	for path, page := range tree(t, ".md") {
		if filepath.ToSlash(filepath.Dir(path)) != "docs/design" {
			continue
		}
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(page, -1) {
			if !functions[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
		if filepath.Base(path) != "engine.md" {
			continue
		}
		for _, m := range regexp.MustCompile("`(?:\\w+\\.)*([a-z]+[A-Z]\\w*|[A-Z][a-z]+[A-Z]\\w*)(?:\\(\\))?`").FindAllStringSubmatch(page, -1) {
			named++
			if !declared[m[1]] {
				t.Errorf("%s names %s, which is declared nowhere", path, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("engine.md names %d functions and fields, which cannot be all", named)
	}
}

func TestLinksInDocumentsAreValid(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for path, text := range tree(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // the network is not asked
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", path, m[1])
				continue
			}
			if anchor != "" && !hasAnchor(t, file, anchor) {
				t.Errorf("%s: %s has no heading for the link %s", path, file, m[1])
			}
		}
	}
}

// hasAnchor reports whether a document has a heading that a link with #anchor
// finds: its words in lower case with dashes between.
func hasAnchor(t *testing.T, file, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	odd := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	for line := range strings.Lines(string(text)) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			heading = odd.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			if strings.ReplaceAll(heading, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

// public lists the packages whose exported types are in the glossary.
var public = []string{
	"", "commit", "compile", "content", "diff", "format", "inspect", "llm", "llm/providers", "maintain", "objects", "priority", "recorder", "safefile",
}

// TestGlossaryHasEveryExportedType: an exported type is in docs/glossary.md, under the name
// of its package, or in the comment of the package. The names of options, errors and
// results explain themselves.
func TestGlossaryHasEveryExportedType(t *testing.T) {
	glossary, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^type ([A-Z]\w*)`)
	for _, path := range public {
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("package %q: %d files, %v", path, len(files), err)
		}
		code := ""
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_test.go") {
				code += string(text)
			}
		}
		_, section, _ := strings.Cut(string(glossary), "\n### "+cmp.Or(path, "tract")+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for _, m := range declaration.FindAllStringSubmatch(code, -1) {
			name := m[1]
			explained := strings.HasSuffix(name, "Options") || strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Result")
			if !explained && !strings.Contains(section, "`"+name+"`") && !strings.Contains(packageComment(code), "["+name+"]") {
				t.Errorf("docs/glossary.md has no line for the type %s of package %s", name, cmp.Or(path, "tract"))
			}
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
			if !strings.Contains(code, "\ntype "+m[1]) {
				t.Errorf("docs/glossary.md has the type %s of package %s, which does not exist", m[1], cmp.Or(path, "tract"))
			}
		}
	}
}

// packageComment returns the comment of a package.
func packageComment(code string) string {
	at := strings.Index(code, "// Package ")
	if at < 0 {
		return ""
	}
	comment, _, _ := strings.Cut(code[at:], "\npackage ")
	return comment
}
