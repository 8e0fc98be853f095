package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// walks measures a walk over all headers of a history in the page cache.
func (b *bench) walks(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		if err := b.walking(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) walking(ctx context.Context, h *history) (err error) {
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	ref, err := objects.ReadRef(ctx, repo.Store(), "refs/heads/main")
	if err != nil {
		return err
	}
	took, err := alternate(ctx, b.rounds, 0, timed(func(ctx context.Context) error {
		n := 0
		for _, err := range commit.WalkReuse(ctx, repo.Store(), ref.Target, 0) {
			if err != nil {
				return err
			}
			n++
		}
		if n != h.size {
			return fmt.Errorf("the walk visited %d commits, want %d", n, h.size)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	b.record(named("walk of headers, a commit", h.size), atMost(400).only(h.size == million), each("", "ns", time.Nanosecond, h.size, took[0]))
	return nil
}

// budget is about 800 KB of text in tokens, less than the smallest measured history with a
// limit.
const (
	budget      = 200_000
	budgetSmall = 10_000
)

// budgets measures compiling with a budget for a long and a short history, each with a
// store that was just opened.
func (b *bench) budgets(ctx context.Context) error {
	large, small := b.sizes[len(b.sizes)-1], b.upTo(budgetSmall)
	var sides [2]side
	for i, size := range []int{large, small} {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		sides[i] = timed(func(ctx context.Context) error {
			repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			_, err = repo.Compile(ctx, "main", tract.CompileOptions{Budget: budget})
			return errors.Join(err, repo.Close())
		})
	}
	took, err := alternate(ctx, b.rounds, 0, sides[:]...)
	if err != nil {
		return err
	}
	b.compare(named("compile with a budget of 800 KB", large), atMost(150).only(large == million && small == budgetSmall),
		times("", took[0]), times("the same of "+count(small), took[1]))
	return nil
}

// The histories whose newest commits are printed.
const (
	logLarge = 300_000
	logSmall = 100
)

// logs measures a run of "tract log -n 20".
func (b *bench) logs(ctx context.Context) error {
	if !b.hasProgram("log of 20") {
		return nil
	}
	large, small := b.upTo(logLarge), min(logSmall, b.sizes[0])
	var sides []side
	for _, size := range []int{large, small} {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		sides = append(sides, timed(func(ctx context.Context) error { return b.tract(ctx, h.dir, "log", "-n", "20") }))
	}
	if b.hasTool("git", "git log -20") {
		g, err := b.git(ctx, large)
		if err != nil {
			return err
		}
		sides = append(sides, timed(func(ctx context.Context) error { return runQuiet(g.command(ctx, "log", "-20")) }))
	}
	took, err := alternate(ctx, 5*b.rounds, 0, sides...)
	if err != nil {
		return err
	}
	name := named("tract log -n 20", large)
	b.compare(name, atMost(1.2).only(large == logLarge), times("", took[0]), times("the same of "+count(small), took[1]))
	if len(sides) > 2 {
		b.compare(name+", to git", atMost(2.5).only(large == logLarge), times("", took[0]), times("git log -20", took[2]))
	}
	return nil
}
