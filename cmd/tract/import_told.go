package main

import (
	"fmt"
	"strings"
)

// nothingIn says that a folder with so many files to try has no conversation.
func nothingIn(folder string, files int) error {
	if files == 0 {
		err := fmt.Errorf("import %s: no .json or .jsonl file is in the folder", folder)
		return hinted(err, "name the folder that the logs are in, such as ~/.claude/projects, or a file itself")
	}
	text := "none of its %s has a conversation"
	if files == 1 {
		text = "its %s has no conversation"
	}
	err := fmt.Errorf("import %s: "+text, folder, count(uint64(files), "file"))
	return hinted(err, "want message arrays, request bodies, or session logs; --format says which when looking does not")
}

// wordless says that a file is a log, and nobody says a word in it: Claude Code writes the
// titles of sessions to files of their own.
func wordless(path string) error {
	if path == "-" {
		path = "stdin"
	}
	err := fmt.Errorf("import %s: nobody says a word in it", path)
	return hinted(err, "the messages of the session are in another log; a folder brings in all that are in it")
}

// kept says of an import for which there was no room to the end what has come in.
func (m *importing) kept(err error) error {
	added := 0
	for _, d := range m.done {
		added += d.Added
	}
	if added == 0 || m.o.dry || err == nil {
		return err
	}
	f := classify(err)
	if f.kind != kindNoSpace {
		return err
	}
	room, _, _ := strings.Cut(f.hint, ";") // the rest says that nothing was changed
	return hinted(err, "%s; what came before is kept (%s), and the next import goes on from there", room, count(uint64(added), "block"))
}

// each is the errors that one is made of.
func each(err error) []error {
	if list, is := err.(interface{ Unwrap() []error }); is {
		return list.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// summed is many errors of an import as one.
func summed(list []error, format string, args ...any) error {
	return &failure{
		code: codeNo, kind: "failed", errors: list, cause: fmt.Errorf(format, args...),
		hint: "the errors say why; all else is kept: mend the files and import again",
	}
}
