// Package refs turns what a person types into the id of a commit, and says
// which names are allowed.
//
// For most uses: fill a [Resolver] and call Resolve. The words of a revision are
// git's where git has one:
//
//	main  tags/v1  refs/rescued/…     a branch, a tag, any ref
//	3fa2c1d                           the first digits of an id, four or more
//	HEAD  @                           the branch the person is on
//	REV~3  REV^                       commits before it, by first parent
//	REV^2                             the second parent of a merge
//	REV^{message}                     the first commit of its message
//	REV^{turn}                        the user message that began its turn
//	main@{2}  main@{yesterday}        where a branch was, by moves or by time
//	toolu_01…                         the call with that id
//	:/words                           the newest commit that says them
//	A..B                              what B has and A has not (Range)
//
// A name that is a ref is never taken for digits of an id.
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
	Rescued  = "refs/rescued/"  // replies that could not land: BRANCH/TIME
	Describe = "refs/describe/" // what a branch is about: a label
)

// Check returns a *[NameError] that says what is wrong with the name of a branch or a tag.
func Check(name string) error {
	if why := wrongName(name); why != "" {
		return &NameError{Name: name, Why: why}
	}
	return nil
}

func wrongName(name string) string {
	if name == "" {
		return "empty"
	}
	if name == "HEAD" || name == "@" {
		return "has a meaning of its own"
	}
	if err := objects.CheckRefName(Heads + name); err != nil {
		_, why, _ := strings.Cut(err.Error(), `": `)
		return why
	}
	return ""
}

// UnknownError says that a revision names nothing.
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

// Is makes the error an objects.ErrNotFound.
func (e *UnknownError) Is(target error) bool { return target == objects.ErrNotFound }

// None says that there is no ref of a full name, in words for who typed the rest of it.
func None(ref string) *UnknownError {
	for _, of := range []struct{ folder, what string }{{Heads, "branch"}, {Tags, "tag"}, {Rescued, "rescued reply"}} {
		if own, ok := strings.CutPrefix(ref, of.folder); ok {
			return &UnknownError{Rev: own, Why: "there is no " + of.what + " of that name"}
		}
	}
	return &UnknownError{Rev: ref, Why: "there is no ref of that name"}
}

// AmbiguousError says that the digits of a revision begin several ids.
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
