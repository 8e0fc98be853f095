package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// revCounter numbers the rows of a log by their ~n, which holds as a revision: every commit
// of the first-parent line counts, also one that is not shown.
type revCounter struct {
	n       int // of the next commit of that line
	next    objects.ID
	started bool
}

// trailingSteps is the end of a revision that only counts back along first parents.
var trailingSteps = regexp.MustCompile(`(?:~\d*|\^)+$`)

// newRevCounter numbers the rows of the log of a revision or a range: that of HEAD~3 begins
// with ~3.
func newRevCounter(rev string) *revCounter {
	l := &revCounter{}
	if strings.HasPrefix(rev, ":/") { // where all that follows belongs to the text
		return l
	}
	steps := strings.ReplaceAll(trailingSteps.FindString(rev), "^", "~1")
	for step := range strings.SplitSeq(strings.TrimPrefix(steps, "~"), "~") {
		n, err := strconv.Atoi(step)
		if err != nil && steps != "" { // ~ alone
			n = 1
		}
		l.n += n
	}
	return l
}

// rev is the ~n of the next commit of a walk; empty for what a merge brought.
func (l *revCounter) rev(c *commit.Commit) string {
	if l == nil || l.started && c.ID != l.next {
		return ""
	}
	l.started, l.next = true, c.Parent()
	l.n++
	return fmt.Sprintf("~%d", l.n-1)
}
