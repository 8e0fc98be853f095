package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
)

// saveUnsavedResponse writes a response that could not be stored to a file, and adds the file's name
// to the error; or the second error if that fails too.
func saveUnsavedResponse(err error) error {
	var unsaved *tract.UnsavedError
	if !errors.As(err, &unsaved) {
		return err
	}
	path, fileErr := writeResponseFile(unsaved.Response)
	if fileErr != nil {
		return fmt.Errorf("%w; it could not be written to a file either: %w", err, fileErr)
	}
	f := classify(err)
	why := f.hint
	if f.hint = "the response is saved in " + path; why != "" {
		f.hint += "; " + why
	}
	return f
}

// writeResponseFile writes a response as JSON to a new file that only the user can read.
func writeResponseFile(r *tract.Response) (path string, err error) {
	said := &tract.Response{Text: r.Text, Reasoning: r.Reasoning, Blocks: r.Blocks, Usage: r.Usage, Finish: r.Finish} // without commits: there are none
	var text bytes.Buffer
	if err := format.Encode(&text, format.NewReply(said)); err != nil {
		return "", err
	}
	return writeTemp("tract-reply-*.json", text.Bytes())
}
