package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// firstBranch is the default name of the first branch.
const firstBranch = "main"

// head is what HEAD names: a branch or, detached, a commit.
type head struct {
	branch string
	commit objects.ID // when it is on no branch
}

// maxHead is the number of bytes of the file HEAD that are read. No branch name is as long.
const maxHead = 300

// String returns the branch or the id, as a revision for a resolver.
func (h head) String() string {
	if h.branch != "" {
		return h.branch
	}
	return h.commit.String()
}

// head reads the file HEAD of the store's folder. A store without one is on its
// first branch.
func (a *app) head() (head, error) {
	p, err := a.findStore()
	if err != nil || p.root == "" {
		return head{branch: firstBranch}, err
	}
	path := filepath.Join(p.root, "HEAD")
	text, err := p.files.Read(path, maxHead)
	if errors.Is(err, fs.ErrNotExist) {
		return head{branch: firstBranch}, nil
	}
	if err != nil {
		return head{}, err
	}
	h, err := parseHead(strings.TrimSpace(string(text)))
	if err != nil {
		return head{}, withHint(fmt.Errorf("read %s: %w", path, err), "tract switch NAME rewrites it")
	}
	return h, nil
}

func parseHead(line string) (head, error) {
	if name, ok := strings.CutPrefix(line, "ref: "+refs.Heads); ok {
		return head{branch: name}, refs.Check(name)
	}
	id, err := objects.ParseID(line)
	return head{commit: id}, err
}

func (a *app) setHead(h head) error {
	p, err := a.findStore()
	if err != nil {
		return err
	}
	if p.root == "" {
		return withHint(fmt.Errorf("move HEAD: the store %s has no working folder", p.displayName()), "name the branch with --branch")
	}
	if err := p.makeFolderIfServer(); err != nil {
		return fmt.Errorf("move HEAD: %w", err)
	}
	line := h.commit.String()
	if h.branch != "" {
		line = "ref: " + refs.Heads + h.branch
	}
	if err := safefile.Write(filepath.Join(p.root, "HEAD"), []byte(line+"\n"), nil); err != nil {
		return fmt.Errorf("move HEAD: %w", err)
	}
	return nil
}
