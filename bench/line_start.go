package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildProgram builds the program as it is given away. One that does not build is
// left out, so that the store can be measured without it.
func (b *bench) buildProgram(ctx context.Context) error {
	if b.pkg == "" {
		return nil
	}
	b.telling("building %s", b.pkg)
	path := filepath.Join(b.dir, "tract.exe") // the one name that runs everywhere
	build := exec.CommandContext(ctx, "go", "build", "-C", b.pkg, "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.missing("the program", fmt.Sprintf("it does not build: %v: %.300s", err, out))
		return ctx.Err()
	}
	b.program = path
	return nil
}

// hasProgram tells whether there is a program to measure, and notes when there is
// none.
func (b *bench) hasProgram(what string) bool {
	if b.program == "" {
		b.missing(what, "there is no program")
	}
	return b.program != ""
}

// starts measures the program alone: its size, and how long it takes to say its
// version.
func (b *bench) starts(ctx context.Context) error {
	if !b.hasProgram("start of the program") {
		return nil
	}
	info, err := os.Stat(b.program)
	if err != nil {
		return err
	}
	b.tell("the program, stripped", goal{}, megabytes("", info.Size()))
	took, err := inTurns(ctx, 5*b.rounds, 0, clocked(func(ctx context.Context) error { return b.tract(ctx, b.dir, "version") }))
	if err != nil {
		return err
	}
	b.tell("start of tract version", goal{}, times("", took[0]))
	return nil
}
