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
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		a.signals = append(a.signals, syscall.SIGHUP)
	}
	return a.run(context.Background(), os.Args[1:])
}
