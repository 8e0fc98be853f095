package main

import (
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
)

// filter is what the flags of log let through.
type filter struct {
	cmd   *cobra.Command
	tests []func(c *commit.Commit) bool
	err   error // of the first flag that is wrong
}

func (f *filter) add(test func(c *commit.Commit) bool) { f.tests = append(f.tests, test) }

// wrong notes that a flag is.
func (f *filter) wrong(text string, args ...any) {
	if f.err == nil {
		f.err = usageError(f.cmd, text, args...)
	}
}

// pass tells whether a commit is shown.
func (f *filter) pass(c *commit.Commit) bool {
	for _, test := range f.tests {
		if !test(c) {
			return false
		}
	}
	return true
}

// filter reads the flags.
func (o *logOptions) filter(a *app, cmd *cobra.Command) (func(*commit.Commit) bool, error) {
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	f := &filter{cmd: cmd}
	f.kind(o.kind)
	f.role(o.role)
	f.matches("--author", o.author, func(c *commit.Commit) string { return c.Author })
	f.matches("--grep", o.grep, searchText)
	f.since(o.since)
	f.until(o.until)
	if !o.annotations {
		f.add(func(c *commit.Commit) bool { return c.Op != commit.Annotate })
	}
	if hidden := !a.json && !o.jsonl && !v.Bool("reasoning.include_in_response"); o.noReasoning || hidden && !o.reasoning {
		f.add(func(c *commit.Commit) bool { return c.Kind != content.KindReasoning })
	}
	return f.pass, f.err
}

func (f *filter) kind(name string) {
	if name == "" {
		return
	}
	kind, err := content.ParseKind(name)
	if err != nil {
		f.wrong("--%s", err)
	}
	f.add(func(c *commit.Commit) bool { return c.Kind == kind && c.Op != commit.Annotate })
}

func (f *filter) role(name string) {
	if name == "" {
		return
	}
	role, err := content.ParseRole(name)
	if err != nil {
		f.wrong("--%s", err)
	}
	f.add(func(c *commit.Commit) bool { return c.Role == role })
}

// matches wants a regular expression to match a text of the commit. ^ and $ are
// those of a line, as in git.
func (f *filter) matches(flag, expression string, of func(c *commit.Commit) string) {
	if expression == "" {
		return
	}
	if _, err := regexp.Compile(expression); err != nil { // in the words of the person, without what is added
		f.wrong("%s %q: %s", flag, expression, err)
		return
	}
	r := regexp.MustCompile("(?m)" + expression)
	f.add(func(c *commit.Commit) bool { return r.MatchString(of(c)) })
}

func (f *filter) since(text string) {
	f.time("--since", text, func(made, t time.Time) bool { return !made.Before(t) })
}

func (f *filter) until(text string) {
	f.time("--until", text, func(made, t time.Time) bool { return !made.After(t) })
}

func (f *filter) time(flag, text string, in func(made, t time.Time) bool) {
	if text == "" {
		return
	}
	t, err := refs.ParseTime(text, time.Now())
	if err != nil {
		f.wrong("%s: %s", flag, err)
	}
	f.add(func(c *commit.Commit) bool { return in(c.Time, t) })
}

// searchText is all words of a commit: what --grep looks at.
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
