// Tract keeps the context of language models in a content-addressed store: see
// tract --help, and https://pkg.go.dev for the Go API in package tract.
//
// One file is one command: its options, its constructor, its run method. What
// they share is in app.go (the store), head.go (where HEAD is), fail.go (errors,
// hints and exit codes), text.go (words from arguments, files and stdin) and
// screen.go (colour, pager, width).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode is main without the exit, so that deferred work is done.
func mainCode() int {
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ending = append(ending, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends it at once, wherever it waits
	// Whoever reads the output may go away, as head does. That must not kill a process in
	// the middle of a reply, which is paid for: writing fails, and ends what only shows.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
