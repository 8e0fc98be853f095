package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// A search is kept as a log: a line for each thing that was said, a word and an
// id. Reading it again gives the state.

// maxBisect is more bytes than the log of a search has.
const maxBisect = 1 << 20

// bisectFile is where the log lies, and whose files are accepted there.
func (a *app) bisectFile() (string, safefile.Policy, error) {
	p, err := a.findStore()
	if err != nil {
		return "", safefile.Policy{}, err
	}
	if p.root == "" {
		return "", p.files, withHint(fmt.Errorf("bisect: store %s has no folder to keep the search in", p.shown()), "name a store in a folder with --dir")
	}
	return filepath.Join(p.root, "BISECT"), p.files, nil
}

var errNoSearch = &failure{
	code: codeNo, kind: "bisect", cause: errors.New("bisect: no search in progress"), hint: "tract bisect start BAD GOOD starts one",
}

// bisection reads the search that is going on.
func (a *app) bisection(ctx context.Context) (*bisection, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	path, files, err := a.bisectFile()
	if err != nil {
		return nil, err
	}
	text, err := files.Read(path, maxBisect)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoSearch
	}
	if err != nil {
		return nil, err
	}
	b, err := parseBisect(path, text)
	if err != nil {
		return nil, err
	}
	return b, b.halve(ctx, repo.Store())
}

// parseBisect reads the log of a search.
func parseBisect(path string, text []byte) (*bisection, error) {
	b := &bisection{skip: map[objects.ID]bool{}}
	for line := range strings.Lines(string(text)) {
		word, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "start" && digits == "" {
			continue
		}
		id, err := objects.ParseID(digits)
		if err == nil && !b.mark(word, id) {
			err = fmt.Errorf("line %q: want good, bad or skip and an id", line)
		}
		if err != nil {
			return nil, withHint(fmt.Errorf("bisect: %s: %w", path, err), "tract bisect reset")
		}
	}
	return b, nil
}

// say adds lines to the log.
func (a *app) appendBisectLog(begin bool, lines ...string) error {
	path, files, err := a.bisectFile()
	if err != nil {
		return err
	}
	text := strings.Join(lines, "\n") + "\n"
	if begin {
		return safefile.Write(path, []byte(text), nil)
	}
	f, err := files.Open(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (a *app) bisectStart(ctx context.Context, args []string) error {
	lines := []string{"start"}
	for i, rev := range args {
		id, err := a.resolve(ctx, rev)
		if err != nil {
			return err
		}
		word := "good"
		if i == 0 {
			word = "bad"
		}
		lines = append(lines, word+" "+id.String())
	}
	if _, err := a.open(ctx, false); err != nil {
		return err
	}
	if err := a.appendBisectLog(true, lines...); err != nil {
		return err
	}
	return a.bisectStatus(ctx)
}

// bisectStatus says where the search stands.
func (a *app) bisectStatus(ctx context.Context) error {
	b, err := a.bisection(ctx)
	if err != nil {
		return err
	}
	return a.printBisection(ctx, b)
}

// bisectMark takes what is said of the commit that was named, or of others.
func (a *app) bisectMark(ctx context.Context, word string, args []string) error {
	b, err := a.bisection(ctx)
	if err != nil {
		return err
	}
	var lines []string
	for _, rev := range args {
		id, err := a.resolve(ctx, rev)
		if err != nil {
			return err
		}
		lines = append(lines, word+" "+id.String())
	}
	if len(args) == 0 && b.next != nil {
		lines = []string{word + " " + b.next.ID.String()}
	}
	if len(lines) == 0 {
		id, err := a.resolve(ctx, "HEAD")
		if err != nil {
			return err
		}
		lines = []string{word + " " + id.String()}
	}
	return a.applyBisectMarks(ctx, b, lines)
}

// applyBisectMarks adds what fits to the log: a line that leaves nothing to search is
// refused and not kept.
func (a *app) applyBisectMarks(ctx context.Context, b *bisection, lines []string) error {
	for _, line := range lines {
		word, digits, _ := strings.Cut(line, " ")
		id, err := objects.ParseID(digits)
		if err != nil {
			return err
		}
		b.mark(word, id)
	}
	if err := b.halve(ctx, a.repo.Store()); err != nil {
		return err
	}
	if err := a.appendBisectLog(false, lines...); err != nil {
		return err
	}
	return a.printBisection(ctx, b)
}

func (a *app) bisectLog() error {
	path, files, err := a.bisectFile()
	if err != nil {
		return err
	}
	text, err := files.Read(path, maxBisect)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoSearch
	}
	if err != nil {
		return err
	}
	if _, err := parseBisect(path, text); err != nil {
		return err
	}
	return a.emit(strings.Split(strings.TrimSpace(string(text)), "\n"), func(p *format.Printer) { p.Text(string(text)) })
}

func (a *app) bisectReset() error {
	path, _, err := a.bisectFile()
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoSearch
	}
	if err == nil && a.json {
		return format.Encode(a.out, map[string]bool{"done": true})
	}
	return err
}
