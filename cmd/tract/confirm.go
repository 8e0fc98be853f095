package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/format"
)

// yesHelp is the help text of the flag --yes.
const yesHelp = "do not ask; required if stdin is not a terminal"

// confirm returns nil if the user agrees to something irreversible, such as "purge the content of
// 2 blocks". It asks on a terminal and returns an error elsewhere; if yes is set, it does not ask.
func (a *app) confirm(ctx context.Context, yes bool, what string) error {
	if yes {
		return nil
	}
	what = format.Line(what)
	if !isTerminal(a.in) || !isTerminal(a.errOut) {
		return &failure{
			code: codeUsage, kind: "usage", hint: "--yes does it without asking, --dry-run shows what would be removed",
			cause: fmt.Errorf("this would permanently %s, and there is no terminal to ask", what),
		}
	}
	fmt.Fprintf(a.errOut, "Permanently %s? This cannot be undone. [y/N] ", what)
	answer, err := runUntilDone(ctx, func() (string, error) {
		line, _ := bufio.NewReader(a.in).ReadString('\n') // a failed read is no yes
		return strings.ToLower(strings.TrimSpace(line)), nil
	})
	if err == nil && answer != "y" && answer != "yes" {
		a.info("nothing was changed")
		err = negativeAnswer()
	}
	return err
}
