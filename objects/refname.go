package objects

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxRefName is the most bytes of a ref name.
const maxRefName = 255

// CheckRefName returns what is wrong with the name of a ref. A name is "refs/" and
// at least two more parts, in printable UTF-8 of at most 255 bytes, with none of
// what paths, shells and revisions could take for something else.
func CheckRefName(name string) error {
	if problem := refNameProblem(name); problem != "" {
		return fmt.Errorf("ref name %.100q: %s", name, problem)
	}
	return nil
}

// refNameProblem returns what is wrong with the name of a ref, in words; empty: nothing.
func refNameProblem(name string) string {
	switch {
	case len(name) > maxRefName:
		return fmt.Sprintf("longer than %d bytes", maxRefName)
	case !utf8.ValidString(name):
		return "not UTF-8"
	case !norm.NFC.IsNormalString(name):
		return "not in Unicode normal form C"
	case !strings.HasPrefix(name, "refs/"):
		return `does not begin with "refs/"`
	case strings.Contains(name, ".."):
		return `".." is not allowed`
	case strings.Contains(name, "@{"):
		return `"@{" is not allowed`
	}
	if strings.Count(name, "/") < 2 {
		return `want "refs/", a sort and a name`
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return "a part of it is empty"
		case part == "@":
			return `a part of it is "@"`
		case part[0] == '.' || part[0] == '-':
			return fmt.Sprintf("a part of it begins with %q", part[0])
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock"):
			return `a part of it ends in "." or ".lock"`
		}
	}
	at := strings.IndexAny(name, " ~^:?*[\\\"'`<>|")
	if at < 0 {
		at = strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	}
	if at >= 0 {
		r, _ := utf8.DecodeRuneInString(name[at:])
		return fmt.Sprintf("%q is not allowed", r)
	}
	return ""
}

// checkBatch returns what is wrong with a batch before an engine sees it.
func checkBatch(b Batch) error {
	for i := range b.Put {
		if err := b.Put[i].Check(); err != nil {
			return fmt.Errorf("put: %w", err)
		}
	}
	seen := make(map[string]bool, len(b.Refs))
	for _, u := range b.Refs {
		if err := CheckRefName(u.Name); err != nil {
			return err
		}
		if seen[u.Name] {
			return fmt.Errorf("ref %s: twice in one batch", u.Name)
		}
		seen[u.Name] = true
	}
	return nil
}
