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

// history is a store with one branch, in which a user and an assistant take turns,
// and the same words beside it in the ways of people who have no store.
type history struct {
	size  int
	place string // the folder that has the store in it
	flat  string // a JSON line a message: role and words
	full  string // the same with ids and times
	text  int64  // bytes of the words
	bench *bench
	after *history // packed by gc, once asked for
}

func (h *history) store() string { return filepath.Join(h.place, ".tract") }

// firstTime is when the first commit of a history was made, in milliseconds. The
// next ones come at a second's distance.
const firstTime = 1_750_000_000_000

// history gives the one of a size, made when it is first asked for.
func (b *bench) history(ctx context.Context, size int) (*history, error) {
	if h := b.histories[size]; h != nil {
		return h, nil
	}
	b.telling("  making a history of %s commits", count(size))
	base := filepath.Join(b.dir, fmt.Sprint("h", size))
	h := &history{size: size, place: base, flat: base + ".jsonl", full: base + "-full.jsonl", bench: b}
	if err := os.Mkdir(h.place, 0o700); err != nil {
		return nil, err
	}
	if err := h.make(ctx); err != nil {
		return nil, fmt.Errorf("make a history of %d commits: %w", size, err)
	}
	b.histories[size] = h
	return h, nil
}

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
			texts[i] = message(historySeed, from+i)
			blocks[i] = block(from+i, texts[i])
		}
		ids, err := repo.Branch("main").Append(ctx, blocks, tract.AppendOptions{})
		if err != nil {
			return err
		}
		for i, text := range texts {
			n := from + i
			h.text += int64(len(text))
			_, _ = files[0].Write(record(n, text)) // a bufio.Writer keeps its error
			_, _ = files[1].Write(fullRecord(ids[i].String(), firstTime+1000*int64(n), n, text))
		}
	}
	return nil
}

// block is the n-th message of a history.
func block(n int, text string) content.Block {
	if role(n) == "user" {
		return content.User(text)
	}
	return content.Assistant(text)
}

// copy gives a copy of the store, for those that write to it.
func (h *history) copy(name string) (*history, error) {
	c := *h
	c.place = h.place + "-" + name
	return &c, os.CopyFS(c.place, os.DirFS(h.place))
}

// packed is a copy of the store after gc.
func (h *history) packed(ctx context.Context) (*history, error) {
	if h.after != nil {
		return h.after, nil
	}
	h.bench.telling("  packing the history of %s commits", count(h.size))
	p, err := h.copy("packed")
	if err != nil {
		return nil, err
	}
	if err := h.bench.tract(ctx, p.place, "gc", "--prune", "--grace", "0"); err != nil {
		return nil, err
	}
	h.after = p
	return p, nil
}

// packedSize is the bytes of a history after gc.
func (h *history) packedSize(ctx context.Context) (int64, error) {
	p, err := h.packed(ctx)
	if err != nil {
		return 0, err
	}
	return folderSize(p.store())
}

// command is the program with a store, ready to run. Nothing of the person who
// measures gets in: no settings, no keys.
func (b *bench) command(ctx context.Context, place string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, b.program, append([]string{"--dir", place}, args...)...)
	c.Env, c.Dir = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}, b.dir
	return c
}

// tract runs the program for what it does, not for what it prints.
func (b *bench) tract(ctx context.Context, place string, args ...string) error {
	return quietly(b.command(ctx, place, args...))
}

// quietly runs a command, whose error has what it said.
func quietly(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %.300s", filepath.Base(c.Path), c.Args[1:], err, out)
	}
	return nil
}

// folderSize is the bytes of all files in a folder.
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

// dropFolder takes all files of a folder out of the page cache.
func dropFolder(path string) error {
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return drop(file)
	})
}
