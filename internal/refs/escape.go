package refs

import (
	"fmt"
	"net/url"
	"strings"
)

// NameError is the error for a name that a branch or a tag cannot have.
type NameError struct {
	Name string
	Why  string
}

// Error describes the name and what is wrong with it.
func (e *NameError) Error() string { return fmt.Sprintf("name %.100q: %s", e.Name, e.Why) }

// Hint names a valid name that stands for the invalid one; empty when there is none.
func (e *NameError) Hint() string {
	escaped := Escape(e.Name)
	if e.Name == "" || nameProblem(escaped) != "" {
		return ""
	}
	return fmt.Sprintf("choose another name, or use %s, which stands for it", escaped)
}

// emptyName is the name that stands for the empty string: a lone percent sign stands for
// nothing else.
const emptyName = "%"

// Escape returns the name of a branch that stands for any string. A valid name without a
// percent sign stands for itself. In any other string, a percent sign and two digits stand
// for each byte that is not an ASCII letter, a digit, "_", or a "-" or "/" where these are
// valid. Different strings have different names, and [Unescape] returns the string. The
// name of a string that is too long is too long as well.
func Escape(name string) string {
	switch {
	case name == "":
		return emptyName
	case !strings.Contains(name, "%") && nameProblem(name) == "":
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		begins := i == 0 || name[i-1] == '/' // a part of the name
		ends := i == len(name)-1
		switch {
		case name == "HEAD" && i == 0:
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-' && !begins, c == '/' && !begins && !ends:
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// Unescape returns the string that the name of a branch stands for. A name that Escape
// returns for no string is an error.
func Unescape(name string) (string, error) {
	if name == emptyName {
		return "", nil
	}
	text, err := url.PathUnescape(name)
	if err != nil {
		return "", fmt.Errorf("name %q: want two digits after %%: %w", name, err)
	}
	if want := Escape(text); want != name {
		return "", fmt.Errorf("name %q: want %q", name, want)
	}
	return text, nil
}
