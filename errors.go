package tract

import (
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// ConflictError is the error for an operation that depends on the tip of a branch which
// another writer moved meanwhile.
type ConflictError struct {
	Operation string
	Branch    string
	Expected  objects.ID // the tip that the operation read; zero: none
	Actual    objects.ID // the present tip; zero: none
	Response  *Response  // of Generate: the response that could not be committed to the branch
	Rescued   string     // the rescue ref that the response is kept under; may be empty
}

// Error names the branch and both tips.
func (e *ConflictError) Error() string {
	text := fmt.Sprintf("%s: branch %s moved meanwhile: expected %s, is at %s", e.Operation, e.Branch, shortIDOrNothing(e.Expected), shortIDOrNothing(e.Actual))
	if e.Rescued != "" {
		text += "; the response is kept under " + e.Rescued
	}
	return text
}

func shortIDOrNothing(id objects.ID) string {
	if id.IsZero() {
		return "nothing"
	}
	return id.Short()
}
