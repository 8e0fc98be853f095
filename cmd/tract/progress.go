package main

import (
	"fmt"
	"strings"
	"time"
)

// The width of a progress bar in cells, and the time between updates.
const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

// startProgress returns functions that draw and remove a progress bar. Without a terminal, and with
// --json, stepOrNil is nil and end does nothing.
func (a *app) startProgress(what string) (stepOrNil func(done, total int64), end func()) {
	if a.json || !isTerminal(a.errOut) {
		return nil, func() {}
	}
	begun, last, drawn := time.Now(), time.Now(), false
	step := func(done, total int64) {
		if now := time.Now(); now.Sub(last) < barEvery || total <= 0 {
			return
		}
		last, drawn = time.Now(), true
		full := int(barWidth * min(done, total) / total)
		line := fmt.Sprintf("tract: %s [%s%s] %3d %%", what, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*min(done, total)/total)
		if spent := last.Sub(begun); spent > time.Second && done > 0 && done < total {
			line += fmt.Sprintf(", %v left", time.Duration(float64(spent)/float64(done)*float64(total-done)).Round(time.Second))
		}
		fmt.Fprintf(a.errOut, "\r\x1b[K%s", line)
	}
	return step, func() {
		if drawn {
			fmt.Fprint(a.errOut, "\r\x1b[K")
		}
	}
}
