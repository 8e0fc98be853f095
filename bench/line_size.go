package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sizesFrom is the smallest history whose size has limits. In smaller ones the fixed part
// of a store dominates.
const sizesFrom = 10_000

// sizesOnDisk measures the bytes of a history as it was written and after gc, against other
// ways to store the same records with their ids, times and roles.
func (b *bench) sizesOnDisk(ctx context.Context) error {
	for _, size := range b.sizes {
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		if err := b.sizeOnDisk(ctx, h, atMost(0.5)); err != nil {
			return err
		}
	}
	h, err := b.historyOf(ctx, longMessages, b.upTo(sizesFrom))
	if err != nil {
		return err
	}
	return b.sizeOnDisk(ctx, h, atMost(0.35))
}

// sizeOnDisk measures one history. afterGC limits its bytes after gc to those of the text.
func (b *bench) sizeOnDisk(ctx context.Context, h *history, afterGC limit) error {
	limited := h.size >= sizesFrom
	before, err := folderSize(h.store())
	if err != nil {
		return err
	}
	b.compare(h.named("bytes before gc"), atMost(1.7).only(limited), megabytes("", before), megabytes("the text", h.text))
	if !b.hasProgram("bytes after gc") {
		return nil
	}
	after, err := h.sizeAfterGC(ctx)
	if err != nil {
		return err
	}
	ours, name := megabytes("", after), h.named("bytes after gc")
	b.compare(name+", to the text", afterGC.only(limited), ours, megabytes("the text", h.text))
	if n, err := b.zstdSize(ctx, h.full); err != nil {
		return err
	} else if n > 0 {
		b.compare(name+", to JSON lines", atMost(1.4).only(limited), ours, megabytes("JSON lines in zstd -3", n))
	}
	if h.set.name == "" {
		if err := b.gitSize(ctx, h, name, ours); err != nil {
			return err
		}
	}
	if b.sqlite == nil {
		return nil
	}
	if err := b.sqliteOf(h); err != nil {
		return err
	}
	a, err := b.sqlite.do(sqliteRequest{Do: "pack"})
	if err != nil {
		return err
	}
	b.compare(name+", to SQLite", atMost(0.5).only(limited), ours, megabytes("SQLite after VACUUM", a.Bytes))
	return nil
}

func megabytes(name string, n int64) figure { return one(name, "MB", float64(n)/1e6) }

// zstdSize returns the size of a file compressed by zstd -3, or 0 where zstd is not
// installed.
func (b *bench) zstdSize(ctx context.Context, path string) (int64, error) {
	if !b.hasTool("zstd", "JSON lines in zstd -3") {
		return 0, nil
	}
	packed := path + ".zst"
	if err := runQuiet(exec.CommandContext(ctx, "zstd", "-q", "-f", "-3", path, "-o", packed)); err != nil {
		return 0, err
	}
	info, err := os.Stat(packed)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// gitSize compares a size with that of a git repository after a repack. Repacking more than
// 100k commits takes longer than the whole benchmark.
func (b *bench) gitSize(ctx context.Context, h *history, name string, ours figure) error {
	if h.size > hundredThousand {
		b.skip(name+", to git", "git repack of so many takes too long")
		return nil
	}
	if !b.hasTool("git", name+", to git") {
		return nil
	}
	g, err := b.git(ctx, h.size)
	if err != nil {
		return err
	}
	small := *g
	small.dir = strings.TrimSuffix(g.dir, ".git") + "-repacked.git"
	if err := os.CopyFS(small.dir, os.DirFS(g.dir)); err != nil {
		return err
	}
	if err := runQuiet(small.command(ctx, "repack", "-a", "-d", "-f", "-q")); err != nil {
		return err
	}
	n, err := folderSize(filepath.Join(small.dir, "objects"))
	if err != nil {
		return err
	}
	b.compare(name+", to git", atMost(0.6).only(h.size >= sizesFrom), ours, megabytes("git, repacked", n))
	return os.RemoveAll(small.dir)
}
