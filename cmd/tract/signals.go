package main

import (
	"os"
	"os/signal"
	"syscall"
)

// defaultSignals are the commands that only read. A signal ends them at once, even if they wait
// for a reader, unless they have a pager to wait for.
var defaultSignals = []string{"tract cat-file", "tract log", "tract rev-parse", "tract show", "tract status", "tract version"}

// catchSignals makes the first signal cancel the command and the second end it. SIGPIPE must not
// end a process that is receiving a response: writing fails instead.
func (a *app) catchSignals() {
	if len(a.signals) == 0 {
		return
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, a.signals...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-came
		signal.Stop(came)
		a.cancel()
	}()
}
