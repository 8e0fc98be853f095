package tract

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/priority"
)

// callOptions are the options of one call, with the settings and the author of the Repo as
// defaults. Each kind of call has its own exported struct of options; the resolve functions
// convert each of these structs to callOptions.
type callOptions struct {
	settings         settings.Values
	author           string
	operation        *history.Operation // the operation that the call is part of; nil before the first batch
	key              commit.Key
	label            commit.Label
	time             time.Time // of the commits
	now              time.Time
	priority         priority.Level
	role             content.Role
	until            time.Time
	budget           int
	target           llm.Target
	includeReasoning bool
	tools            []llm.Tool
	noTools          bool // no tools, regardless of the settings
	external         bool // the blocks come from another program
	ask              AskOptions
	onSecrets        func([]Secret) // secrets; may be nil
}

// defaultOptions returns the options of a call without options from the caller.
func (r *Repo) defaultOptions() *callOptions {
	now := r.clock()
	return &callOptions{settings: r.settings, author: r.author, time: now, now: now, onSecrets: r.onSecrets}
}

// setSettings overrides settings of the Repo.
func (c *callOptions) setSettings(values map[string]string) (err error) {
	c.settings, err = c.settings.WithAll(values)
	return err
}

// setTime sets the time of the commits; zero is now.
func (c *callOptions) setTime(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.time = t
	return checkTime(t)
}

// setBudget sets the most tokens of the prompt.
func (c *callOptions) setBudget(tokens int) error {
	if tokens < 0 {
		return fmt.Errorf("budget of %d tokens: want 0 or more", tokens)
	}
	c.budget = tokens
	return nil
}

// setAuthor sets the author of the commits; empty is that of the Repo.
func (c *callOptions) setAuthor(author string) {
	if author != "" {
		c.author = author
	}
}

// resolveAppend returns the options of an Append.
func (r *Repo) resolveAppend(o AppendOptions) (*callOptions, error) {
	c := r.defaultOptions()
	c.setAuthor(o.Author)
	c.label, c.key.Text, c.priority, c.role = commit.Label{Text: o.Label, Meta: o.Meta}, o.Key, o.Priority, o.Role
	c.external, c.ask.OnWarning = o.External, o.OnWarning
	return c, c.setTime(o.Time)
}

// resolveAsk returns the options of a request to a model.
func (r *Repo) resolveAsk(o AskOptions) (*callOptions, error) {
	v, err := r.settings.WithAll(o.Settings)
	if err != nil {
		return nil, err
	}
	return r.resolveAskWithSettings(v, o)
}

// resolveAskWithSettings returns the options of a request to a model with these settings.
func (r *Repo) resolveAskWithSettings(v settings.Values, o AskOptions) (*callOptions, error) {
	c := r.defaultOptions()
	c.setAuthor(o.Author)
	c.settings, c.includeReasoning, c.ask = v, o.IncludeReasoning, o
	if o.Key != "" {
		c.key = commit.Key{Kind: commit.KeyRequest, Text: o.Key}
	}
	c.tools = c.maskAndReportTools(o.Tools)
	return c, c.setBudget(o.Budget)
}

// resolveCompile returns the options of a Compile.
func (r *Repo) resolveCompile(o CompileOptions) (*callOptions, error) {
	c := r.defaultOptions()
	c.includeReasoning, c.until, c.target = o.IncludeReasoning, o.Until, o.Target
	if err := c.setBudget(o.Budget); err != nil {
		return nil, err
	}
	return c, c.setSettings(o.Settings)
}

// resolveRequest returns the options of a Request or a Check.
func (r *Repo) resolveRequest(o RequestOptions, t llm.Target) (*callOptions, error) {
	c, err := r.resolveCompile(CompileOptions{Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Until: o.Until, Target: t})
	if err != nil {
		return nil, err
	}
	c.tools = c.maskAndReportTools(o.Tools)
	return c, content.CheckBlocks(o.UserMessage)
}

// explicitOrUsualRole returns the role that the caller gave for appended blocks, or else the usual role of the
// block.
func (c *callOptions) explicitOrUsualRole(block content.Block) content.Role {
	return cmp.Or(c.role, content.RoleOf(block))
}

// callOnWarning calls OnWarning.
func (c *callOptions) callOnWarning(p Problem) {
	if c.ask.OnWarning != nil {
		c.ask.OnWarning(p)
	}
}

// compilerOptions returns the options of the compiler.
func (c *callOptions) compilerOptions() compile.Options {
	o := compile.Options{Policy: c.settings.Policy(), Budget: c.budget}
	o.Policy.IncludeReasoning = o.Policy.IncludeReasoning || c.includeReasoning
	if c.target != nil {
		o.DropOpenReasoning = !c.target.NeedsReasoningInToolLoop()
	}
	if k, ok := c.target.(llm.ReasoningKeeper); ok {
		o.KeepToolReasoning = k.NeedsReasoningAfterToolLoop(c.modelSettings())
	}
	return o
}

// modelSettings returns the settings that are sent in a request to a model.
func (c *callOptions) modelSettings() llm.Settings {
	v := c.settings
	s := llm.Settings{
		Model: v.Text("model"), MaxOutputTokens: v.Int("max_output_tokens"), Temperature: v.Float("temperature"), ToolChoice: v.Text("tool_choice"),
		Reasoning: llm.Reasoning{
			Disabled: !v.Bool("reasoning.enabled"), Effort: v.Text("reasoning.effort"), Summary: v.Text("reasoning.summary"),
			MaxTokens: v.Int("reasoning.max_tokens"), Native: v.Text("reasoning.format") == "native",
		},
		Extra: []byte(v.Text("request.extra")),
	}
	if c.noTools {
		s.ToolChoice = ""
	}
	return s
}

// The times that RFC 3339 can express in UTC: from minTime to before maxTime.
var (
	minTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// checkTime returns an error for a time that RFC 3339 cannot express.
func checkTime(t time.Time) error {
	if t.Before(minTime) || !t.Before(maxTime) {
		return fmt.Errorf("time %d seconds after 1970: want a year from 0 to 9999", t.Unix())
	}
	return nil
}
