package main

import (
	"os"
	"os/signal"
	"syscall"
)

// glances is the commands that look for a moment. A signal ends them as it ends any
// program: nothing is to be finished, and to listen for it takes a tenth of their
// time. On a terminal they listen, for the pager is to be waited for there.
var glances = []string{"tract cat-file", "tract log", "tract ls-refs", "tract rev-parse", "tract show", "tract status", "tract version"}

// listen makes a signal end the command where it can end, and a second one wherever it
// is. Whoever reads the output may go away, as head does. That must not kill a process in
// the middle of a reply, which is paid for: writing fails, and ends what only shows.
func (a *app) listen() {
	if a.listening || len(a.signals) == 0 {
		return
	}
	a.listening = true
	came := make(chan os.Signal, 1)
	signal.Notify(came, a.signals...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-came
		signal.Stop(came)
		a.cancel()
	}()
}
