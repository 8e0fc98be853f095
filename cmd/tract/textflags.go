package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// textFlags is the source of a text: an argument, -F FILE, - for stdin, a pipe, or an editor on
// a terminal.
type textFlags struct{ file string }

func (w *textFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&w.file, "text-file", "F", "", "read the text from this file, or from stdin with -")
}

// read returns the text. args are the remaining arguments; before is the initial text in an
// editor.
func (w *textFlags) read(ctx context.Context, a *app, args []string, before string) (string, error) {
	switch {
	case len(args) > 1:
		return "", usageError("%d arguments given: put quotes around the text", len(args))
	case len(args) == 1 && w.file != "":
		return "", usageError("both a text and -F given: use one")
	case w.file != "" && w.file != "-":
		return readFile(ctx, w.file)
	case w.file == "-" || len(args) == 1 && args[0] == "-":
		return readLimited(a.stdin(ctx), "stdin")
	case len(args) == 1:
		return args[0], nil
	case !isTerminal(a.in):
		return readLimited(a.stdin(ctx), "stdin")
	}
	return a.editText(ctx, before)
}

// readFile reads a file of at most the size of a block.
func readFile(ctx context.Context, path string) (string, error) {
	f, info, err := openFile(ctx, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() > content.MaxSize {
		return "", tooLongError(path)
	}
	return readLimited(f, path)
}

func tooLongError(name string) error {
	return fmt.Errorf("read %s: %w of %d MiB for one block", name, objects.ErrLimit, content.MaxSize>>20)
}

// readLimited reads a text of at most the size of a block.
func readLimited(r io.Reader, name string) (string, error) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, content.MaxSize+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if n > content.MaxSize {
		return "", tooLongError(name)
	}
	return b.String(), nil
}

// editText opens the user's editor, as git does, and returns the text.
func (a *app) editText(ctx context.Context, before string) (string, error) {
	editor := firstNonEmpty(os.Getenv("TRACT_EDITOR"), os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	file, err := writeTemp("tract-*.md", []byte(before))
	if err != nil {
		return "", err
	}
	defer os.Remove(file) //nolint:errcheck // nothing depends on it
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$@"`, editor, file)
	run.Stdin, run.Stdout, run.Stderr = a.in, a.out, a.errOut
	if err := run.Run(); err != nil {
		return "", withHint(fmt.Errorf("editor %q: %w", editor, err), "set $EDITOR, or give the text as an argument")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if len(text) > content.MaxSize {
		return "", tooLongError("the text")
	}
	return strings.TrimRight(string(text), "\n"), nil
}

// writeTemp writes a new temporary file that only the user can read, and returns its path.
func writeTemp(pattern string, text []byte) (string, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// readPipe returns the text from a pipe, if there is one.
func (a *app) readPipe(ctx context.Context) (string, error) {
	f, ok := a.in.(*os.File)
	if !ok {
		return readLimited(a.stdin(ctx), "stdin")
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 && !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // a closed stdin is no pipe
	}
	return readLimited(a.stdin(ctx), "stdin")
}

func firstNonEmpty(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
