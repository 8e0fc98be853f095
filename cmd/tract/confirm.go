package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/format"
)

// yesHelp is the help of the flag --yes.
const yesHelp = "do not ask; required if stdin is not a terminal"

// confirm reports whether to do what cannot be undone, such as "erase the content of 2
// blocks": it asks on a terminal, and refuses where there is none. yes is the answer of
// the flag --yes.
func (a *app) confirm(ctx context.Context, yes bool, what string) (bool, error) {
	if yes {
		return true, nil
	}
	what = format.Line(what)
	if !isTerminal(a.in) || !isTerminal(a.err) {
		return false, &failure{
			code: codeUsage, kind: "usage", hint: "--yes does it without asking, --dry-run shows what would be removed",
			cause: fmt.Errorf("this would permanently %s, and there is no terminal to ask", what),
		}
	}
	fmt.Fprintf(a.err, "Permanently %s? This cannot be undone. [y/N] ", what)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n') // a read that fails is no yes
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case said := <-answer:
		return said == "y" || said == "yes", nil
	}
}

// cancelled is the end of a command that was not to go on.
func cancelled(a *app, err error) error {
	if err != nil {
		return err
	}
	a.info("nothing was changed")
	return negative()
}
