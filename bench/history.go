package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// history is a store with one branch on which a user and an assistant take turns, and
// files with the same messages in other forms.
type history struct {
	set    messageSet
	size   int    // commits
	dir    string // the folder that contains .tract
	flat   string // JSON lines: role and text
	full   string // JSON lines: id, time, role and text
	text   int64  // bytes of the text of all messages
	bench  *bench
	packed *history // a copy of the store after gc; nil: not made yet
}

func (h *history) store() string { return filepath.Join(h.dir, ".tract") }

// named returns the name of a figure of the history.
func (h *history) named(what string) string {
	name := named(what, h.size)
	if h.set.name != "" {
		name += ", " + h.set.name
	}
	return name
}

// firstTime is the time of the first commit of a history in Unix milliseconds. The next
// ones follow at intervals of one second.
const firstTime = 1_750_000_000_000

// historyKey identifies a history.
type historyKey struct {
	set  string
	size int
}

// history returns the history of short messages with a number of commits.
func (b *bench) history(ctx context.Context, size int) (*history, error) {
	return b.historyOf(ctx, shortMessages, size)
}

// historyOf returns a history, which is made at the first call.
func (b *bench) historyOf(ctx context.Context, set messageSet, size int) (*history, error) {
	key := historyKey{set.name, size}
	if h := b.histories[key]; h != nil {
		return h, nil
	}
	b.progress("  making a history of %s commits %s", count(size), set.name)
	base := filepath.Join(b.dir, fmt.Sprint("history", len(b.histories)))
	h := &history{set: set, size: size, dir: base, flat: base + ".jsonl", full: base + "-full.jsonl", bench: b}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return nil, err
	}
	if err := h.make(ctx); err != nil {
		return nil, fmt.Errorf("make a history of %d commits: %w", size, err)
	}
	b.histories[key] = h
	return h, nil
}

// make commits the messages and writes the files.
func (h *history) make(ctx context.Context) (err error) {
	var files [2]*bufio.Writer
	for i, name := range []string{h.flat, h.full} {
		f, created := os.Create(name)
		if created != nil {
			return errors.Join(err, created)
		}
		files[i] = bufio.NewWriterSize(f, 1<<20)
		defer func() { err = errors.Join(err, files[i].Flush(), f.Close()) }()
	}
	now := int64(firstTime)
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{Create: true, Now: func() time.Time { now += 1000; return time.UnixMilli(now) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	const batch = 1000
	for from := 0; from < h.size; from += batch {
		texts := make([]string, min(batch, h.size-from))
		blocks := make([]content.Block, len(texts))
		for i := range texts {
			texts[i] = h.set.text(historySeed, from+i)
			blocks[i] = block(from+i, texts[i])
		}
		ids, err := repo.Branch("main").Append(ctx, blocks, tract.AppendOptions{})
		if err != nil {
			return err
		}
		for i, text := range texts {
			n := from + i
			h.text += int64(len(text))
			_, _ = files[0].Write(jsonLine(n, text)) // a bufio.Writer keeps its error
			_, _ = files[1].Write(fullJSONLine(ids[i].String(), firstTime+1000*int64(n), n, text))
		}
	}
	return nil
}

// block returns the n-th message of a history.
func block(n int, text string) content.Block {
	if role(n) == "user" {
		return content.User(text)
	}
	return content.Assistant(text)
}

// copy returns a copy of the store, for what writes to it.
func (h *history) copy(name string) (*history, error) {
	c := *h
	c.dir = h.dir + "-" + name
	return &c, os.CopyFS(c.dir, os.DirFS(h.dir))
}

// afterGC returns a copy of the store after gc, which is made at the first call.
func (h *history) afterGC(ctx context.Context) (*history, error) {
	if h.packed != nil {
		return h.packed, nil
	}
	h.bench.progress("  gc of the history of %s commits %s", count(h.size), h.set.name)
	p, err := h.copy("packed")
	if err != nil {
		return nil, err
	}
	if err := h.bench.tract(ctx, p.dir, "gc", "--prune", "--grace", "0"); err != nil {
		return nil, err
	}
	h.packed = p
	return p, nil
}

// sizeAfterGC returns the bytes of the store after gc.
func (h *history) sizeAfterGC(ctx context.Context) (int64, error) {
	p, err := h.afterGC(ctx)
	if err != nil {
		return 0, err
	}
	return folderSize(p.store())
}

// command returns a command that runs tract on a store, without the settings and keys of
// the person who runs the benchmark.
func (b *bench) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, b.program, append([]string{"--dir", dir}, args...)...)
	c.Env, c.Dir = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}, b.dir
	return c
}

// tract runs the program and discards its output.
func (b *bench) tract(ctx context.Context, dir string, args ...string) error {
	return runQuiet(b.command(ctx, dir, args...))
}

// runQuiet runs a command. An error contains the beginning of its output.
func runQuiet(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %.300s", filepath.Base(c.Path), c.Args[1:], err, out)
	}
	return nil
}

// folderSize returns the bytes of all files in a folder.
func folderSize(path string) (n int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// evictFolder drops all files of a folder from the page cache.
func evictFolder(path string) error {
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return evict(file)
	})
}
