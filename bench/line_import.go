package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// importSize is the number of imported messages.
const importSize = 10_000

// imports measures `tract import` against `git fast-import`.
func (b *bench) imports(ctx context.Context) error {
	if !b.hasProgram("import") || !b.hasTool("git", "import") {
		return nil
	}
	size := b.upTo(importSize)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	shared, err := b.git(ctx, size)
	if err != nil {
		return err
	}
	g := *shared
	g.dir = filepath.Join(b.dir, "import.git")
	dir := filepath.Join(b.dir, "import")
	took, err := alternate(ctx, b.rounds, 0, func(ctx context.Context) (time.Duration, error) {
		if err := os.RemoveAll(dir); err != nil {
			return 0, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return 0, err
		}
		if err := b.tract(ctx, dir, "init"); err != nil {
			return 0, err
		}
		return timed(func(ctx context.Context) error { return b.tract(ctx, dir, "import", h.flat, "--as", "main") })(ctx)
	}, func(ctx context.Context) (time.Duration, error) {
		if err := g.empty(ctx); err != nil {
			return 0, err
		}
		return timed(g.fastImport)(ctx)
	})
	if err != nil {
		return err
	}
	b.compare("import of "+count(size)+" messages", atLeast(7).only(size == importSize), per("", size, took[0]), per("git fast-import", size, took[1]))
	return nil
}

// fscks measures `tract fsck` against `git fsck`.
func (b *bench) fscks(ctx context.Context) error {
	if !b.hasProgram("fsck") || !b.hasTool("git", "fsck") {
		return nil
	}
	size := b.upTo(hundredThousand)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	packed, err := h.afterGC(ctx)
	if err != nil {
		return err
	}
	g, err := b.git(ctx, size)
	if err != nil {
		return err
	}
	took, err := alternate(ctx, max(3, b.rounds/2), 0,
		timed(func(ctx context.Context) error { return b.tract(ctx, h.dir, "fsck") }),
		timed(func(ctx context.Context) error { return runQuiet(g.command(ctx, "fsck", "--no-progress")) }),
		timed(func(ctx context.Context) error { return b.tract(ctx, packed.dir, "fsck") }),
	)
	if err != nil {
		return err
	}
	l, baseline := atLeast(5).only(size >= importSize), per("git fsck", size, took[1])
	b.compare(named("fsck", size), l, per("", size, took[0]), baseline)
	b.compare(named("fsck after gc", size), l, per("", size, took[2]), baseline)
	return nil
}
