package tract

import "github.com/tract-vcs/tract/internal/refs"

// BranchName returns the name of a branch that stands for any string, such as the id of a
// thread, a user or a session in another system: "thread 1" is "thread%201", "user@host:7"
// is "user%40host%3A7". A string that may be the name of a branch and has no percent sign
// is its own name. Different strings have different names, and [ParseBranchName] gives the
// string back. A name of more than 244 bytes is refused where it is used.
func BranchName(anything string) string { return refs.Escape(anything) }

// ParseBranchName returns the string that [BranchName] made a name of. Any other name with
// a percent sign in it, and any name that no branch can have, is an error.
func ParseBranchName(name string) (string, error) { return refs.Unescape(name) }
