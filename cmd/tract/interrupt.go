package main

import (
	"os"
	"os/signal"
)

// glances is the commands that look for a moment. A signal ends them as it ends any
// program: nothing is to be finished, and to listen for it takes a tenth of their
// time. On a terminal they listen, for the pager is to be waited for there.
var glances = []string{"tract cat-file", "tract log", "tract ls-refs", "tract rev-parse", "tract show", "tract status", "tract version"}

// listen makes a signal end the command where it can end.
func (a *app) listen() {
	if a.listening || len(a.signals) == 0 {
		return
	}
	a.listening = true
	came := make(chan os.Signal, 1)
	signal.Notify(came, a.signals...)
	go func() {
		<-came
		a.cancel()
	}()
}
