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

// Sizes that have limits.
const (
	hundredThousand = 100_000
	million         = 1_000_000
)

// compiles measures compiling the prompt of a whole history in a new process, against
// reading the same messages from a flat file.
func (b *bench) compiles(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		if err := b.compileOf(ctx, h, atMost(2.3), atMost(2.5), atMost(2.3)); err != nil {
			return err
		}
	}
	h, err := b.historyOf(ctx, longMessages, b.upTo(hundredThousand))
	if err != nil {
		return err
	}
	if !canEvict {
		b.skip("cold compile", "a file cannot be dropped from the page cache here")
	}
	return b.compileOf(ctx, h, atMost(1.5), atMost(1.5), atMost(1.5))
}

// compileOf measures the prompt of one history. The limits are those of 100k commits.
func (b *bench) compileOf(ctx context.Context, h *history, cold, coldAfterGC, warm limit) error {
	packed, err := b.packedHistory(ctx, h)
	if err != nil {
		return err
	}
	measure := func(h *history, evict bool, what string, l limit) error {
		return b.compileInNewProcess(ctx, h, evict, what, l.only(h.size == hundredThousand))
	}
	if canEvict {
		if err := measure(h, true, "cold compile in a new process", cold); err != nil {
			return err
		}
	}
	if canEvict && packed != nil {
		if err := measure(packed, true, "cold compile after gc in a new process", coldAfterGC); err != nil {
			return err
		}
	}
	return measure(h, false, "warm compile in a new process", warm)
}

// packedHistory returns the history after gc, or nil where tract was not built.
func (b *bench) packedHistory(ctx context.Context, h *history) (*history, error) {
	if !b.hasProgram("after gc") {
		return nil, nil
	}
	return h.afterGC(ctx)
}

// roundsFor returns the number of rounds for work that takes seconds on large histories.
func (b *bench) roundsFor(size int) int {
	if size >= million {
		return max(3, b.rounds/2)
	}
	return b.rounds
}

func (b *bench) compileInNewProcess(ctx context.Context, h *history, cold bool, what string, l limit) error {
	took, err := alternate(ctx, b.roundsFor(h.size), 0, inNewProcess(cold, h.flat, "read"), inNewProcess(cold, h.store(), "compile"))
	if err != nil {
		return err
	}
	baseline := "a flat file, warm"
	if cold {
		baseline = "a flat file, cold"
	}
	b.compare(h.named(what), l, times("", took[1]), times(baseline, took[0]))
	return nil
}

// inNewProcess returns a side that runs in a new process, with the file or folder dropped
// from the page cache first if it is cold.
func inNewProcess(cold bool, path, what string) side {
	return func(ctx context.Context) (time.Duration, error) {
		if cold {
			if err := evictFolder(path); err != nil {
				return 0, err
			}
		}
		f, err := runChild(ctx, what, path)
		return f.Took, err
	}
}

// compilesBesidePeers measures a warm compile against reading all messages from SQLite and
// from git.
func (b *bench) compilesBesidePeers(ctx context.Context) error {
	size := b.upTo(hundredThousand)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	compile := inNewProcess(false, h.store(), "compile")
	name := named("warm compile in a new process", size)
	if b.sqlite != nil {
		if err := b.sqliteOf(h); err != nil {
			return err
		}
		took, err := alternate(ctx, b.rounds, 0, compile, func(context.Context) (time.Duration, error) {
			a, err := b.sqlite.do(sqliteRequest{Do: "read"})
			return a.Took, err
		})
		if err != nil {
			return err
		}
		b.compare(name+", to SQLite", noLimit, times("", took[0]), times("SQLite select, open database", took[1]))
	}
	if !b.hasTool("git", name+", to git") {
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
	took, err := alternate(ctx, b.rounds, 0, compile, timed(func(ctx context.Context) error {
		c := g.command(ctx, "cat-file", "--batch", "--buffer")
		c.Stdin, c.Stdout = bytes.NewReader(wanted), io.Discard
		return c.Run()
	}))
	if err != nil {
		return err
	}
	b.compare(name+", to git", noLimit, times("", took[0]), times("git cat-file --batch", took[1]))
	return nil
}

// sqliteOf creates a database with the messages of a history and opens it.
func (b *bench) sqliteOf(h *history) error {
	path := h.dir + ".db"
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := b.sqlite.do(sqliteRequest{Do: "open", Path: path}); err != nil {
		return err
	}
	_, err := b.sqlite.do(sqliteRequest{Do: "load", Path: h.full})
	return err
}

// compilesAfter measures compiling after one more commit in a process that has compiled
// before. The time of the commit does not count.
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
		if err := errors.Join(err, os.RemoveAll(c.dir)); err != nil {
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
	took, err := alternate(ctx, 20*b.rounds, 0, func(ctx context.Context) (time.Duration, error) {
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
	b.record(named("compile after one commit, same process", h.size), atMost(50).only(h.size == hundredThousand), each("", "µs", time.Microsecond, 1, took[0]))
	return nil
}

// memory measures what a process needs to compare for a prompt.
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
		f, err := runChild(ctx, "compile", h.store())
		if err != nil {
			return err
		}
		if f.Peak == 0 {
			b.skip(name, "the peak of a process is not known here")
			return nil
		}
		if f.Bytes != h.text {
			return fmt.Errorf("the prompt has %d bytes, want %d", f.Bytes, h.text)
		}
		most.samples = append(most.samples, float64(f.Peak)/1e6)
	}
	b.compare(name, atMost(2.0).only(size == hundredThousand), most, one("the text of the prompt", "MB", float64(h.text)/1e6))
	return nil
}
