package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// revCounter numbers the rows of a log with their ~n. Every first-parent commit counts, also a
// hidden one.
type revCounter struct {
	n       int // of the next commit of that line
	next    objects.ID
	started bool
}

// trailingSteps matches the end of a revision that only counts back along first parents.
var trailingSteps = regexp.MustCompile(`(?:~\d*|\^)+$`)

// newRevCounter returns the counter for the log of a revision or range. The counter for HEAD~3
// starts with ~3.
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

// nextRev returns the ~n of the next commit of a walk; empty for a commit that came in by a merge.
func (l *revCounter) nextRev(c *commit.Commit) string {
	if l == nil || l.started && c.ID != l.next {
		return ""
	}
	l.started, l.next = true, c.Parent()
	l.n++
	return fmt.Sprintf("~%d", l.n-1)
}
