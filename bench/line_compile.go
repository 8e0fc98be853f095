package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// Sizes that goals are known for.
const (
	hundredThousand = 100_000
	million         = 1_000_000
)

// compiles measures the prompt of a whole history in a new process, which has
// nothing in memory, against reading the same words from a flat file.
func (b *bench) compiles(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		packed, err := b.packedIfThere(ctx, h)
		if err != nil {
			return err
		}
		const coldRaw, coldPacked, warm = "cold compile in a new process", "cold compile after gc in a new process", "warm compile in a new process"
		at100k := func(g goal) goal { return g.only(size == hundredThousand) }
		if canDrop {
			if err := b.compiling(ctx, h, true, coldRaw, at100k(atMost(2.3, 1.3))); err != nil {
				return err
			}
		}
		if canDrop && packed != nil {
			if err := b.compiling(ctx, packed, true, coldPacked, at100k(atMost(2.5, 2))); err != nil {
				return err
			}
		}
		if err := b.compiling(ctx, h, false, warm, at100k(atMost(1.5, 1.2))); err != nil {
			return err
		}
	}
	if !canDrop {
		b.missing("cold compile", "a file cannot be dropped from the page cache here")
	}
	return nil
}

// packedIfThere is the history after gc, nil where there is no program to do it.
func (b *bench) packedIfThere(ctx context.Context, h *history) (*history, error) {
	if !b.hasProgram("after gc") {
		return nil, nil
	}
	return h.packed(ctx)
}

// slow is how often what takes seconds is measured.
func (b *bench) slow(size int) int {
	if size >= million {
		return max(3, b.rounds/2)
	}
	return b.rounds
}

func (b *bench) compiling(ctx context.Context, h *history, cold bool, what string, g goal) error {
	took, err := inTurns(ctx, b.slow(h.size), 0, inChild(cold, h.flat, "read"), inChild(cold, h.store(), "compile"))
	if err != nil {
		return err
	}
	limit := "a flat file, warm"
	if cold {
		limit = "a flat file, cold"
	}
	b.hold(named(what, h.size), g, times("", took[1]), times(limit, took[0]))
	return nil
}

// inChild lets a new process do something with a file or a folder, which may have
// to be read from the disk.
func inChild(cold bool, path, what string) side {
	return func(ctx context.Context) (time.Duration, error) {
		if cold {
			if err := dropFolder(path); err != nil {
				return 0, err
			}
		}
		f, err := ask(ctx, what, path)
		return f.Took, err
	}
}

// compilesBesidePeers measures the same warm against what SQLite and git need to
// get all messages into memory.
func (b *bench) compilesBesidePeers(ctx context.Context) error {
	size := b.upTo(hundredThousand)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	compile := inChild(false, h.store(), "compile")
	name := named("warm compile in a new process", size)
	if b.sqlite != nil {
		if err := b.sqliteOf(h); err != nil {
			return err
		}
		took, err := inTurns(ctx, b.rounds, 0, compile, func(context.Context) (time.Duration, error) {
			a, err := b.sqlite.do(sqliteRequest{Do: "read"})
			return a.Took, err
		})
		if err != nil {
			return err
		}
		b.hold(name+", to SQLite", goal{}, times("", took[0]), times("SQLite select, open database", took[1]))
	}
	if !b.has("git", name+", to git") {
		return nil
	}
	g, err := b.git(ctx, size)
	if err != nil {
		return err
	}
	wanted, err := g.messages(ctx)
	if err != nil {
		return err
	}
	took, err := inTurns(ctx, b.rounds, 0, compile, clocked(func(ctx context.Context) error {
		c := g.command(ctx, "cat-file", "--batch", "--buffer")
		c.Stdin, c.Stdout = bytes.NewReader(wanted), io.Discard
		return c.Run()
	}))
	if err != nil {
		return err
	}
	b.hold(name+", to git", goal{}, times("", took[0]), times("git cat-file --batch", took[1]))
	return nil
}

// sqliteOf opens a database with the messages of a history.
func (b *bench) sqliteOf(h *history) error {
	path := h.place + ".db"
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := b.sqlite.do(sqliteRequest{Do: "open", Path: path}); err != nil {
		return err
	}
	_, err := b.sqlite.do(sqliteRequest{Do: "load", Path: h.full})
	return err
}

// compilesAfter measures the prompt after one more commit, in a process that has
// compiled before. The commit itself does not count.
func (b *bench) compilesAfter(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		c, err := h.copy("after")
		if err != nil {
			return err
		}
		err = b.compilingAfter(ctx, c)
		if err := errors.Join(err, os.RemoveAll(c.place)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compilingAfter(ctx context.Context, h *history) (err error) {
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	n := h.size
	took, err := inTurns(ctx, 20*b.rounds, 0, func(ctx context.Context) (time.Duration, error) {
		n++
		if _, err := repo.Branch("main").Append(ctx, []content.Block{block(n, message(writerSeed, n))}, tract.AppendOptions{}); err != nil {
			return 0, err
		}
		start := time.Now()
		_, err := repo.Compile(ctx, "main", tract.CompileOptions{})
		return time.Since(start), err
	})
	if err != nil {
		return err
	}
	b.tell(named("compile after one commit, same process", h.size), atMost(50, 10).only(h.size == hundredThousand), each("", "µs", time.Microsecond, 1, took[0]))
	return nil
}

// memory measures what a process needs to hold for a prompt.
func (b *bench) memory(ctx context.Context) error {
	size := b.upTo(hundredThousand)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	name := named("peak memory of a compile", size)
	var most figure
	most.unit = "MB"
	for range b.rounds {
		f, err := ask(ctx, "compile", h.store())
		if err != nil {
			return err
		}
		if f.Peak == 0 {
			b.missing(name, "the peak of a process is not known here")
			return nil
		}
		if f.Bytes != h.text {
			return fmt.Errorf("the prompt has %d bytes, want %d", f.Bytes, h.text)
		}
		most.samples = append(most.samples, float64(f.Peak)/1e6)
	}
	b.hold(name, atMost(2.0, 1.3).only(size == hundredThousand), most, one("the words of the prompt", "MB", float64(h.text)/1e6))
	return nil
}
