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

// The state of a search is a log with one mark per line: a word and an id.

// maxBisect is the largest size of the log of a search, in bytes.
const maxBisect = 1 << 20

// bisectFile returns the path of the log, and the policy for files in its folder.
func (a *app) bisectFile() (path string, files safefile.Policy, err error) {
	p, err := a.findStore()
	if err != nil {
		return "", safefile.Policy{}, err
	}
	if p.root == "" {
		return "", p.files, withHint(fmt.Errorf("bisect: store %s has no folder to keep the search in", p.displayName()), "name a store in a folder with --dir")
	}
	return filepath.Join(p.root, "BISECT"), p.files, nil
}

var errNoSearch = &failure{
	code: codeNo, kind: "bisect", cause: errors.New("bisect: no search in progress"), hint: "tract bisect start BAD GOOD starts one",
}

// readBisection reads the search in progress and finds the next commit to test.
func (a *app) readBisection(ctx context.Context) (*bisection, error) {
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
	b := newBisection()
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
	return b, b.chooseNext(ctx, repo.Store())
}

// chooseNextAndSave finds the next commit to test after new marks, and saves them. Marks that leave
// nothing to search are refused.
func (a *app) chooseNextAndSave(ctx context.Context, b *bisection) error {
	if err := b.chooseNext(ctx, a.repo.Store()); err != nil {
		return err
	}
	path, _, err := a.bisectFile()
	if err != nil {
		return err
	}
	return safefile.Write(path, []byte(strings.Join(b.log, "\n")+"\n"), nil)
}

func (a *app) bisectStart(ctx context.Context, args []string) error {
	if _, err := a.open(ctx, false); err != nil {
		return err
	}
	b := newBisection()
	for i, rev := range args {
		word := "good"
		if i == 0 {
			word = "bad"
		}
		if err := a.resolveAndMark(ctx, b, word, rev); err != nil {
			return err
		}
	}
	if err := a.chooseNextAndSave(ctx, b); err != nil {
		return err
	}
	return a.printBisection(ctx, b)
}

// resolveAndMark marks the commit of a revision, without saving the mark.
func (a *app) resolveAndMark(ctx context.Context, b *bisection, word, rev string) error {
	id, err := a.resolve(ctx, rev)
	b.mark(word, id)
	return err
}

// bisectStatus prints the state of the search.
func (a *app) bisectStatus(ctx context.Context) error {
	b, err := a.readBisection(ctx)
	if err != nil {
		return err
	}
	return a.printBisection(ctx, b)
}

// bisectMark marks the commits of args, the named commit, or HEAD.
func (a *app) bisectMark(ctx context.Context, word string, args []string) error {
	b, err := a.readBisection(ctx)
	if err != nil {
		return err
	}
	if len(args) == 0 && b.next == nil {
		args = []string{"HEAD"}
	} else if len(args) == 0 {
		b.mark(word, b.next.ID)
	}
	for _, rev := range args {
		if err := a.resolveAndMark(ctx, b, word, rev); err != nil {
			return err
		}
	}
	if err := a.chooseNextAndSave(ctx, b); err != nil {
		return err
	}
	return a.printBisection(ctx, b)
}

func (a *app) bisectLog(ctx context.Context) error {
	b, err := a.readBisection(ctx)
	if err != nil {
		return err
	}
	return a.emit(b.log, func(p *format.Printer) { p.Text(strings.Join(b.log, "\n") + "\n") })
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
