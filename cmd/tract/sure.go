package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/format"
)

// sure asks whether to do what cannot be undone. Nobody is asked who is no person at a
// terminal: whoever writes a script has decided already.
func (a *app) sure(ctx context.Context, yes bool, question string) (bool, error) {
	if yes || a.json || !isTerminal(a.in) || !isTerminal(a.err) {
		return true, nil
	}
	fmt.Fprintf(a.err, "%s This cannot be undone. [y/N] ", format.Line(question))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n') // what cannot be read is no yes
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case said := <-answer:
		return said == "y" || said == "yes", nil
	}
}
