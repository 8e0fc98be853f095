package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// reads measures compiled prompts and the log on histories of several lengths.
func (b *bench) reads(ctx context.Context) error {
	for i, size := range b.sizes {
		b.telling("a history of %d commits", size)
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		if err := b.compiles(ctx, h); err != nil {
			return err
		}
		if err := b.walks(ctx, h); err != nil {
			return err
		}
		if i == len(b.sizes)-1 {
			if err := b.logs(ctx, h); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(h.store); err != nil {
			return err
		}
	}
	return nil
}

// history is a store with one branch, and the same words in a flat file.
type history struct {
	size  int
	store string
	flat  string
}

// history grows one of size commits: a question, a thought and an answer to a
// turn. What a prompt leaves out, the thoughts, is in the flat file too.
func (b *bench) history(ctx context.Context, size int) (h history, err error) {
	h = history{size: size, store: filepath.Join(b.dir, fmt.Sprint("h", size)), flat: filepath.Join(b.dir, fmt.Sprint("h", size, ".jsonl"))}
	repo, err := tract.Open(ctx, h.store, tract.Create())
	if err != nil {
		return h, err
	}
	var flat bytes.Buffer
	var turn []content.Block
	for n := range size {
		text := words("history", n)
		block := []content.Block{
			content.User(text), content.Reasoning{Text: text, Format: content.FormatParsed}, content.Assistant(text),
		}[n%3]
		flat.Write(record(block.Kind().String(), text))
		if turn = append(turn, block); len(turn) == 999 || n == size-1 {
			if _, err := repo.Branch("main").Append(ctx, turn); err != nil {
				return h, err
			}
			turn = turn[:0]
		}
	}
	if sizer, ok := objects.As[objects.Sizer](repo.Store()); ok {
		_, bytes, err := sizer.Size(ctx)
		if err != nil {
			return h, err
		}
		b.report.add(h.name("JSON lines, size"), float64(flat.Len())/1e6, "MB")
		b.report.against(h.name("JSON lines, size"), h.name("store, size"), float64(bytes)/1e6, "MB")
	}
	if err := os.WriteFile(h.flat, flat.Bytes(), 0o600); err != nil {
		return h, err
	}
	return h, repo.Close()
}

func (h history) name(what string) string { return fmt.Sprintf("%s, %d commits", what, h.size) }

// compiles measures the prompt of a history: with a repo that has compiled it
// before, and with one that was just opened.
func (b *bench) compiles(ctx context.Context, h history) error {
	const times = 5
	flat := h.name("read JSON lines")
	if err := b.timed(times, "", flat, func() error { _, err := os.ReadFile(h.flat); return err }); err != nil {
		return err
	}
	if err := b.timed(times, flat, h.name("compile, new handle"), func() error { return compileOnce(ctx, h.store) }); err != nil {
		return err
	}
	repo, err := tract.Open(ctx, h.store, tract.ReadOnly())
	if err != nil {
		return err
	}
	err = b.timed(times, flat, h.name("compile, again"), func() error { return compile(ctx, repo) })
	return errors.Join(err, repo.Close())
}

// walks measures a walk over all headers, a prompt that has to fit, and the prompt
// after one more commit.
func (b *bench) walks(ctx context.Context, h history) error {
	repo, err := tract.Open(ctx, h.store)
	if err != nil {
		return err
	}
	ref, err := objects.ReadRef(ctx, repo.Store(), "refs/heads/main")
	if err != nil {
		return err
	}
	const times = 5
	err = b.timed(times, "", h.name("walk of headers"), func() error {
		for _, err := range commit.Walk(ctx, repo.Store(), ref.Target, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = b.timed(times, "", h.name("compile with a budget"), func() error {
			_, err := repo.Compile(ctx, "main", tract.Budget(budget))
			return err
		})
	}
	if err == nil {
		err = b.after(ctx, h, repo)
	}
	return errors.Join(err, repo.Close())
}

// budget is 800 KB of words, in tokens.
const budget = 200_000

// after measures only the prompt, not the commit before it.
func (b *bench) after(ctx context.Context, h history, repo *tract.Repo) error {
	took := make([]time.Duration, 200)
	for i := range took {
		if _, err := repo.Branch("main").Append(ctx, []content.Block{content.User(words("more", i))}); err != nil {
			return err
		}
		start := time.Now()
		if err := compile(ctx, repo); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	b.report.add(h.name("compile after a commit"), median(took), "ms")
	return nil
}

func compile(ctx context.Context, repo *tract.Repo) error {
	_, err := repo.Compile(ctx, "main")
	return err
}

func compileOnce(ctx context.Context, store string) error {
	repo, err := tract.Open(ctx, store, tract.ReadOnly())
	if err != nil {
		return err
	}
	defer func() { _ = repo.Close() }() // nothing was written
	return compile(ctx, repo)
}

// logs measures the newest twenty commits, as a new process has to read them.
func (b *bench) logs(ctx context.Context, h history) error {
	return b.timed(20, "", h.name("log of 20, new handle"), func() error {
		repo, err := tract.Open(ctx, h.store, tract.ReadOnly())
		if err != nil {
			return err
		}
		defer func() { _ = repo.Close() }() // nothing was written
		for _, err := range repo.Log(ctx, "main", tract.Limit(20)) {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// timed reports the median of so many calls, after one that does not count.
func (b *bench) timed(times int, yardstick, name string, f func() error) error {
	took := make([]time.Duration, times)
	for i := -1; i < times; i++ {
		start := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i >= 0 {
			took[i] = time.Since(start)
		}
	}
	b.report.against(yardstick, name, median(took), "ms")
	return nil
}
