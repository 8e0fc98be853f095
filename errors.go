package tract

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// ConflictError says that a branch moved while something was done that insists
// on the tip it saw.
type ConflictError struct {
	Operation string
	Branch    string
	Expected  objects.ID // the tip it saw; zero: none
	Actual    objects.ID // the tip there is; zero: none
	Response  *Response  // of a generate: the reply, which is kept
	Rescued   string     // the ref it is kept under
}

// Error names the branch and both tips.
func (e *ConflictError) Error() string {
	text := fmt.Sprintf("%s: branch %s moved meanwhile: expected %s, is at %s", e.Operation, e.Branch, tipName(e.Expected), tipName(e.Actual))
	if e.Rescued != "" {
		text += "; the reply is kept under " + e.Rescued
	}
	return text
}

func tipName(id objects.ID) string {
	if id.IsZero() {
		return "nothing"
	}
	return id.Short()
}

// IncompleteError says that a reply broke off. What came is kept.
type IncompleteError struct {
	Response *Response // what came: whole blocks, and the text or thought that was cut
	Rescued  string    // the ref it is kept under
	Cause    error
}

// Error has the cause and where the reply is kept.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("generate: %v; what came is kept under %s", e.Cause, e.Rescued)
}

// Unwrap gives the cause.
func (e *IncompleteError) Unwrap() error { return e.Cause }

// UnsavedError says that a reply came and the store would not take it. The reply
// is here and nowhere else.
type UnsavedError struct {
	Response *Response
	Cause    error
}

// Error has the cause.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("generate: the reply came but is not stored: %v", e.Cause)
}

// Unwrap gives the cause.
func (e *UnsavedError) Unwrap() error { return e.Cause }

// MisplacedError says that a rescued response would not follow the commit that it
// answered: the branch is elsewhere. Nothing was changed.
type MisplacedError struct {
	Rescued  string     // the ref that the response is kept under
	Branch   string     // the branch that it was to be committed to
	Answered objects.ID // the commit that it answered
	Tip      objects.ID // of the branch
}

// Error names the response, the branch and both commits.
func (e *MisplacedError) Error() string {
	return fmt.Sprintf("%s answered %s, and branch %s is at %s", strings.TrimPrefix(e.Rescued, refs.Rescued), tipName(e.Answered), e.Branch, tipName(e.Tip))
}

// KeyError says that an idempotency key was used before for other content. Nothing was
// changed.
type KeyError struct {
	Key    string
	Commit objects.ID // the first that has the key
}

// Error names the key and the commit.
func (e *KeyError) Error() string {
	return fmt.Sprintf("the idempotency key %q was used for other content: commit %s", e.Key, e.Commit.Short())
}

// PendingError says that tool calls wait for their results.
type PendingError struct {
	Branch string
	Calls  []content.ToolCall
}

// Error names the calls.
func (e *PendingError) Error() string {
	names := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		names[i] = c.CallID
	}
	return fmt.Sprintf("generate: branch %s has tool calls without a result: %s", e.Branch, strings.Join(names, ", "))
}
