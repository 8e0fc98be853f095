package main

import (
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
)

// timeRange holds the flags --since and --until. The zero value contains every time.
type timeRange struct{ since, until time.Time }

// addFlags adds the flags. what names the selected things in the help, such as "commits".
func (r *timeRange) addFlags(cmd *cobra.Command, what string) {
	timeFlag(cmd, &r.since, "since", "only "+what+" from this `time` on, such as yesterday")
	timeFlag(cmd, &r.until, "until", "only "+what+" up to this `time`")
}

// contains reports whether a time is in the range, whose ends are included.
func (r *timeRange) contains(t time.Time) bool {
	return !t.Before(r.since) && (r.until.IsZero() || !t.After(r.until))
}

// commitFilter holds the flags that select commits by time and text.
type commitFilter struct {
	timeRange
	grep *regexp.Regexp
}

func (f *commitFilter) addFlags(cmd *cobra.Command, what string) {
	f.timeRange.addFlags(cmd, what)
	patternFlag(cmd, &f.grep, "grep", "only "+what+" whose text matches this `regexp`")
}

func (f *commitFilter) matches(c *commit.Commit) bool {
	return f.contains(c.Time) && (f.grep == nil || f.grep.MatchString(searchText(c)))
}

// searchText returns the text of a commit that --grep searches.
func searchText(c *commit.Commit) string {
	text := c.Label.Text
	if c.Block == nil {
		return text
	}
	text += "\n" + c.Block.String()
	if call, ok := c.Block.(content.ToolCall); ok {
		text += "\n" + call.Name
	}
	return text
}
