// Tract is version control for the context of language models: see tract --help, and package
// tract for the Go API.
//
// Each command is one file with its options, constructor and run method; commands.go lists them.
// They share app.go (the store), location.go and head.go (where the store and HEAD are),
// flags.go, output.go, screen.go (colors, pager) and fail.go (errors, hints, exit codes).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the program and returns its exit code, so that deferred calls run before the exit.
func mainCode() int {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		a.signals = append(a.signals, syscall.SIGHUP)
	}
	return a.run(context.Background(), os.Args[1:])
}
