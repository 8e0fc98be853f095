package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// starts measures the program: its size, stripped as it is given away, and how
// long it takes to say its version. A program that does not build is left out,
// so that the store can be measured without it.
func (b *bench) starts(ctx context.Context) error {
	if b.program == "" {
		return nil
	}
	b.telling("the program %s", b.program)
	path, err := filepath.Abs(filepath.Join(b.dir, "tract.exe")) // the one name that runs everywhere
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, b.program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.telling("left out, it does not build: %v: %.300s", err, out)
		return ctx.Err()
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	b.report.add("program, stripped", float64(info.Size())/1e6, "MB")
	return b.timed(30, "", "start of tract version", func() error {
		return exec.CommandContext(ctx, path, "version").Run()
	})
}
