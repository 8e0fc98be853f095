package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gitRepo holds the messages of a history in git: a commit for each, with the role as its
// message and the text in one file.
type gitRepo struct {
	dir    string
	stream string // input of fast-import
	bench  *bench
}

// git returns the repository with a number of commits, which is made at the first call.
func (b *bench) git(ctx context.Context, size int) (*gitRepo, error) {
	if g := b.gits[size]; g != nil {
		return g, nil
	}
	b.progress("  making a git repository of %s commits", count(size))
	base := filepath.Join(b.dir, fmt.Sprint("g", size))
	g := &gitRepo{dir: base + ".git", stream: base + ".stream", bench: b}
	if err := g.write(size); err != nil {
		return nil, err
	}
	if err := g.fill(ctx); err != nil {
		return nil, err
	}
	b.gits[size] = g
	return g, nil
}

// write writes the input of fast-import.
func (g *gitRepo) write(size int) (err error) {
	f, err := os.Create(g.stream)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
	for n := range size {
		text := message(historySeed, n)
		fmt.Fprintf(w, "commit refs/heads/main\ncommitter bench <bench@localhost> %d +0000\ndata %d\n%s\nM 100644 inline message\ndata %d\n%s\n",
			firstTime/1000+int64(n), len(role(n)), role(n), len(text), text)
	}
	return nil
}

// fill creates the repository and imports the stream.
func (g *gitRepo) fill(ctx context.Context) error {
	if err := g.empty(ctx); err != nil {
		return err
	}
	return g.fastImport(ctx)
}

// empty creates an empty repository.
func (g *gitRepo) empty(ctx context.Context) error {
	if err := os.RemoveAll(g.dir); err != nil {
		return err
	}
	return runQuiet(g.command(ctx, "init", "-q", "--bare", "-b", "main", g.dir))
}

func (g *gitRepo) fastImport(ctx context.Context) error {
	in, err := os.Open(g.stream)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written
	c := g.command(ctx, "fast-import", "--quiet")
	c.Stdin = in
	return runQuiet(c)
}

// command returns a git command on the repository, without the settings of the person who
// runs the benchmark.
func (g *gitRepo) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = g.bench.dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.bench.dir, "GIT_DIR=" + g.dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost",
	}
	return c
}

// output runs a git command and returns its output without the surrounding white space.
func (g *gitRepo) output(ctx context.Context, in string, args ...string) (string, error) {
	c := g.command(ctx, args...)
	c.Stdin = strings.NewReader(in)
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %q: %w", args, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// commit commits a message with git's plumbing commands.
func (g *gitRepo) commit(ctx context.Context, n int, text string) error {
	parent, err := g.output(ctx, "", "rev-parse", "refs/heads/main")
	if err != nil {
		return err
	}
	blob, err := g.output(ctx, text, "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	tree, err := g.output(ctx, "100644 blob "+blob+"\tmessage\n", "mktree")
	if err != nil {
		return err
	}
	id, err := g.output(ctx, role(n), "commit-tree", tree, "-p", parent)
	if err != nil {
		return err
	}
	return runQuiet(g.command(ctx, "update-ref", "refs/heads/main", id, parent))
}

// messages returns the names of all messages, oldest first, for cat-file.
func (g *gitRepo) messages(ctx context.Context) ([]byte, error) {
	out, err := g.command(ctx, "rev-list", "--reverse", "main").Output()
	return bytes.ReplaceAll(out, []byte("\n"), []byte(":message\n")), err
}
