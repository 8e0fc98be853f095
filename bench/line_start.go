package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildProgram builds tract with the flags of a release. If that fails, the measurements that
// need the program are skipped.
func (b *bench) buildProgram(ctx context.Context) error {
	if b.pkg == "" {
		return nil
	}
	b.progress("building %s", b.pkg)
	path := filepath.Join(b.dir, "tract.exe") // the one name that runs everywhere
	build := exec.CommandContext(ctx, "go", "build", "-C", b.pkg, "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.skip("the program", fmt.Sprintf("build: %v: %.300s", err, out))
		return ctx.Err()
	}
	b.program = path
	return nil
}

// hasProgram reports whether tract was built, and records what is skipped if it was not.
func (b *bench) hasProgram(what string) bool {
	if b.program == "" {
		b.skip(what, "tract was not built")
	}
	return b.program != ""
}

// starts measures the size of the program and the time of "tract version".
func (b *bench) starts(ctx context.Context) error {
	if !b.hasProgram("start of the program") {
		return nil
	}
	info, err := os.Stat(b.program)
	if err != nil {
		return err
	}
	b.record("the program, stripped", noLimit, megabytes("", info.Size()))
	took, err := alternate(ctx, 5*b.rounds, 0, timed(func(ctx context.Context) error { return b.tract(ctx, b.dir, "version") }))
	if err != nil {
		return err
	}
	b.record("start of tract version", noLimit, times("", took[0]))
	return nil
}
