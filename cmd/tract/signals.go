package main

import (
	"os"
	"os/signal"
	"syscall"
)

// defaultSignals is the commands that only read. A signal ends them as it ends any program:
// nothing is to be finished, and a command that waits for whoever reads its output would
// not notice that it is to end. On a terminal they listen, to wait for the pager.
var defaultSignals = []string{"tract cat-file", "tract log", "tract rev-parse", "tract show", "tract status", "tract version"}

// catchSignals makes a signal end the command where it can end, and a second one wherever it
// is. Whoever reads the output may go away, as head does. That must not kill a process in
// the middle of a reply, which is paid for: writing fails, and ends what only shows.
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
