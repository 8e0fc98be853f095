package tract_test

import (
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
// names are there, and so are the subtests of the conformance suite.
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
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
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

// hasAnchor tells whether a document has a heading that a link with #anchor
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
