// Bench measures a store as a program on this machine has it: durable commits,
// compiled prompts, answers that are decoded, the command line. What is measured
// stands beside a yardstick from the same run, such as a file of JSON lines,
// because a disk is never twice the same: the ratio travels, the time does not.
//
//	go run ./cmd/bench -sizes 1000,10000 -out bench.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: error: %v\n", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	dir     string // of its own, removed at the end
	lasting time.Duration
	sizes   []int
	program string
	story   io.Writer
	report  report
}

// run measures what the arguments say, prints a table and writes a file.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	b := bench{story: errOut}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	sizes := flags.String("sizes", "1000,10000,100000", "commits of the histories that are compiled")
	file := flags.String("out", "bench.json", "file to write; empty: none")
	dir := flags.String("dir", ".", "where the stores are made: a disk, not a file system in memory")
	flags.DurationVar(&b.lasting, "time", 3*time.Second, "how long each way of writing is measured")
	flags.StringVar(&b.program, "program", "./cmd/tract", "package of the program to build and start; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("-sizes %q: want numbers with commas between", *sizes)
		}
		b.sizes = append(b.sizes, n)
	}
	made, err := os.MkdirTemp(*dir, ".bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	b.dir, b.report = made, newReport()
	for _, part := range []func(context.Context) error{b.writes, b.reads, b.decodes, b.starts} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	b.report.print(out)
	if *file == "" {
		return nil
	}
	return b.report.write(*file)
}

// telling says what is being measured: some of it takes a while.
func (b *bench) telling(format string, args ...any) {
	fmt.Fprintf(b.story, "bench: "+format+"\n", args...)
}
