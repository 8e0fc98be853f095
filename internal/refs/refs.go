// Package refs resolves revisions, what a person types to name a commit, and checks the
// names of branches and tags.
//
// For most uses: fill a [Resolver] and call Resolve. Revisions are written as in git where
// git has them:
//
//	main  tags/v1  refs/rescued/…     a branch, a tag, any ref
//	3fa2c1d                           the first digits of an id, four or more
//	HEAD  @                           the current branch
//	REV~3  REV^                       ancestors by first parent
//	REV^2                             the second parent of a merge
//	REV^{message}                     the first commit of its message
//	REV^{turn}                        the user message that began its turn
//	main@{2}  main@{yesterday}        where a branch was, by moves or by time
//	toolu_01…                         the tool call with that id
//	:/text                            the newest commit that contains the text
//	A..B                              the commits that B has and A has not (Range)
//
// The name of a ref is never taken for digits of an id.
package refs

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// The folders of ref names.
const (
	Heads    = "refs/heads/"    // branches
	Tags     = "refs/tags/"     // tags
	Rescued  = "refs/rescued/"  // rescued responses: BRANCH/TIME
	Describe = "refs/describe/" // descriptions of branches: labels
	Bodies   = "refs/bodies/"   // bodies of requests that were stored again, because the body that they differ from was purged: ID
)

// Check returns a *[NameError] for a name that a branch or a tag cannot have.
func Check(name string) error {
	if why := nameProblem(name); why != "" {
		return &NameError{Name: name, Why: why}
	}
	return nil
}

// nameProblem returns what is wrong with the name of a branch or tag, in words; empty: nothing.
func nameProblem(name string) string {
	if name == "" {
		return "the name is empty"
	}
	if name == "HEAD" || name == "@" {
		return "this name is reserved"
	}
	if err := objects.CheckRefName(Heads + name); err != nil {
		_, why, _ := strings.Cut(err.Error(), `": `)
		return why
	}
	return ""
}

// SafeName returns text with '-' in place of every character other than letters, digits, '-' and '_'.
func SafeName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, text)
}

// UnknownError is the error for a revision that names nothing.
type UnknownError struct {
	Rev     string
	Why     string
	Nearest string // a name that is there and looks like it; may be empty
}

// Error names the revision.
func (e *UnknownError) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("revision %q: there is no such branch, tag or commit", e.Rev)
	}
	return fmt.Sprintf("revision %q: %s", e.Rev, e.Why)
}

// Is makes the error an [objects.ErrNotFound].
func (e *UnknownError) Is(target error) bool { return target == objects.ErrNotFound }

// None returns the error for a ref that does not exist, by its full name.
func None(ref string) *UnknownError {
	for _, of := range []struct{ folder, what string }{{Heads, "branch"}, {Tags, "tag"}, {Rescued, "rescued response"}} {
		if own, ok := strings.CutPrefix(ref, of.folder); ok {
			return &UnknownError{Rev: own, Why: "there is no " + of.what + " of that name"}
		}
	}
	return &UnknownError{Rev: ref, Why: "there is no ref of that name"}
}

// AmbiguousError is the error for digits that begin several ids.
type AmbiguousError struct {
	Rev        string
	Candidates []objects.ID // some of them
}

// Error lists the candidates.
func (e *AmbiguousError) Error() string {
	var ids strings.Builder
	for _, id := range e.Candidates {
		ids.WriteString(" " + id.String()[:max(12, len(e.Rev)+4)])
	}
	return fmt.Sprintf("revision %q is ambiguous:%s", e.Rev, ids.String())
}
