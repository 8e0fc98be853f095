package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// importSize is how many messages are brought in.
const importSize = 10_000

// imports measures the program that brings in messages, against git's fastest way.
func (b *bench) imports(ctx context.Context) error {
	if !b.hasProgram("import") || !b.has("git", "import") {
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
	place := filepath.Join(b.dir, "import")
	took, err := inTurns(ctx, b.rounds, 0, func(ctx context.Context) (time.Duration, error) {
		if err := os.RemoveAll(place); err != nil {
			return 0, err
		}
		if err := os.Mkdir(place, 0o700); err != nil {
			return 0, err
		}
		if err := b.tract(ctx, place, "init"); err != nil {
			return 0, err
		}
		return clocked(func(ctx context.Context) error { return b.tract(ctx, place, "import", h.flat, "--as", "main") })(ctx)
	}, func(ctx context.Context) (time.Duration, error) {
		if err := g.empty(ctx); err != nil {
			return 0, err
		}
		return clocked(g.fastImport)(ctx)
	})
	if err != nil {
		return err
	}
	b.hold("import of "+count(size)+" messages", atLeast(7, 15).only(size == importSize), per("", size, took[0]), per("git fast-import", size, took[1]))
	return nil
}

// fscks measures the program that looks for damage, against git's.
func (b *bench) fscks(ctx context.Context) error {
	if !b.hasProgram("fsck") || !b.has("git", "fsck") {
		return nil
	}
	size := b.upTo(hundredThousand)
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	packed, err := h.packed(ctx)
	if err != nil {
		return err
	}
	g, err := b.git(ctx, size)
	if err != nil {
		return err
	}
	took, err := inTurns(ctx, max(3, b.rounds/2), 0,
		clocked(func(ctx context.Context) error { return b.tract(ctx, h.place, "fsck") }),
		clocked(func(ctx context.Context) error { return quietly(g.command(ctx, "fsck", "--no-progress")) }),
		clocked(func(ctx context.Context) error { return b.tract(ctx, packed.place, "fsck") }),
	)
	if err != nil {
		return err
	}
	goal, limit := atLeast(5, 12).only(size >= importSize), per("git fsck", size, took[1])
	b.hold(named("fsck", size), goal, per("", size, took[0]), limit)
	b.hold(named("fsck after gc", size), goal, per("", size, took[2]), limit)
	return nil
}
