package tract

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// AppendOptions say what the commits of an Append carry beside their blocks.
type AppendOptions struct {
	Author    string            // empty: the author of the Repo
	Label     string            // a line for people, never sent
	Meta      map[string]string // named values
	Key       string            // idempotency key, see [Branch.Append]
	Time      time.Time         // when the blocks were said, in the years 0 to 9999 of UTC; zero: now
	Priority  priority.Level    // Unset: the rules decide
	Role      content.Role      // NoRole: the usual role of each block; not used by AppendResponse
	External  bool              // the blocks come from another program: their secrets are masked as those of an import
	OnWarning func(Problem)     // Append: is told of tool calls that stay without a result; AppendResponse: of another response with the same id
}

// EditOptions say what an Edit commits.
type EditOptions struct {
	Source string            // a revision: the block gets the text that it has there; the text to Edit has to be empty then
	Author string            // empty: the author of the Repo
	Label  string            // a line for people, never sent
	Meta   map[string]string // named values
	Key    string            // idempotency key, see [Branch.Append]
	Time   time.Time         // zero: now
}

// CompileOptions say how a prompt is compiled.
type CompileOptions struct {
	Settings         map[string]string // by name, such as "reasoning.effort"; laid over those of the Repo; an empty value stands for the default
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Until            time.Time         // compile the history as it was at this time; zero: all of it
	Target           llm.Target        // decides which reasoning and which open calls are sent; nil: as for no provider in particular
}

// RequestOptions say how a request is made that is not sent.
type RequestOptions struct {
	Settings         map[string]string // as in [CompileOptions]
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Until            time.Time         // compile the history as it was at this time; zero: all of it
	Tools            []llm.Tool        // that the model may call
	Stream           bool              // ask for the answer as it is made
	UserMessage      []content.Block   // a user message after the prompt, as if it had been appended; not used by Check
}

// AskOptions say how a model is asked and who is told what. The functions are called by the
// goroutine that asks.
type AskOptions struct {
	Settings         map[string]string // as in [CompileOptions]
	Author           string            // of the entry in the ref log; empty: the author of the Repo
	Key              string            // idempotency key: when one of the last 1,000 commits is of a response under it, that response is returned and nothing is sent
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Tools            []llm.Tool        // that the model may call
	NoStream         bool              // wait for the whole answer, although the client can stream
	Force            bool              // send a request that a rule says will be refused; calls that wait for a result are refused all the same
	EnforceBudgets   bool              // fail with a *[BudgetError] when a reasoning budget of the session is used up

	OnRequest  func(*llm.Request)                // is called with the request before it is sent
	OnEvent    func(llm.Event)                   // is called with each part of the answer as it comes
	OnResponse func(*llm.Request, *llm.Response) // is called before the commit, with the request as it was sent and the answer, whole or broken off
	OnWarning  func(Problem)                     // is called with each problem that does not stop the request, also with those that Force passes over
	OnBudget   func(BudgetUsage)                 // is called once for each reasoning budget, when 80 % of it is used
}

// PrepareOptions say how an [Exchange] is prepared. Its functions are called by Prepare
// and by Accept.
type PrepareOptions struct {
	AskOptions      // NoStream is not used
	Stream     bool // ask for the answer as it is made
}

// LogOptions say what a Log yields.
type LogOptions struct {
	Limit int          // most commits; 0: all
	Tips  []objects.ID // more histories, beside that of the revision; an empty revision adds none
}

// ImportOptions say how an Import works.
type ImportOptions struct {
	DryRun bool // say what would be done, and write nothing
}

// RescueOptions say where a rescued response may be committed.
type RescueOptions struct {
	Anywhere bool // on a branch that is no longer at the commit that the response answered, too
}

// call is what the options of a call say.
type call struct {
	settings  settings.Values
	author    string
	operation *history.Operation // that it is of, from the first batch on
	key       commit.Key
	label     commit.Label
	time      time.Time // that the commits are given
	now       time.Time
	priority  priority.Level
	role      content.Role
	source    commit.Source
	until     time.Time
	budget    int
	target    llm.Target
	include   bool
	tools     []llm.Tool
	plain     bool // no tools, whatever the settings say
	foreign   bool // another program said it all
	ask       AskOptions
	found     func([]Secret) // secrets; may be nil
}

// call is a call without options.
func (r *Repo) call() *call {
	now := r.clock()
	return &call{settings: r.settings, author: r.author, time: now, now: now, found: r.found}
}

// set lays settings over those of the Repo.
func (c *call) set(values map[string]string) (err error) {
	c.settings, err = c.settings.WithAll(values)
	return err
}

// at is when the commits of the call say that they were made; zero: now.
func (c *call) at(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.time = t
	return checkTime(t)
}

// limit is the most tokens of the prompt.
func (c *call) limit(tokens int) error {
	if tokens < 0 {
		return fmt.Errorf("budget of %d tokens: want 0 or more", tokens)
	}
	c.budget = tokens
	return nil
}

func (c *call) by(author string) {
	if author != "" {
		c.author = author
	}
}

// appending is the call of an Append.
func (r *Repo) appending(o AppendOptions) (*call, error) {
	c := r.call()
	c.by(o.Author)
	c.label, c.key.Text, c.priority, c.role = commit.Label{Text: o.Label, Meta: o.Meta}, o.Key, o.Priority, o.Role
	c.foreign, c.ask.OnWarning = o.External, o.OnWarning
	return c, c.at(o.Time)
}

// asking is the call of a question.
func (r *Repo) asking(o AskOptions) (*call, error) {
	v, err := r.settings.WithAll(o.Settings)
	if err != nil {
		return nil, err
	}
	return r.askingWith(v, o)
}

// askingWith is the call of a question with these settings.
func (r *Repo) askingWith(v settings.Values, o AskOptions) (*call, error) {
	c := r.call()
	c.by(o.Author)
	c.settings, c.include, c.ask = v, o.IncludeReasoning, o
	if o.Key != "" {
		c.key = commit.Key{Kind: commit.KeyRequest, Text: o.Key}
	}
	c.tools = c.maskedTools(o.Tools)
	return c, c.limit(o.Budget)
}

// compiling is the call of a Compile.
func (r *Repo) compiling(o CompileOptions) (*call, error) {
	c := r.call()
	c.include, c.until, c.target = o.IncludeReasoning, o.Until, o.Target
	if err := c.limit(o.Budget); err != nil {
		return nil, err
	}
	return c, c.set(o.Settings)
}

// requesting is the call of a Request.
func (r *Repo) requesting(o RequestOptions, t llm.Target) (*call, error) {
	c, err := r.compiling(CompileOptions{Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Until: o.Until, Target: t})
	if err != nil {
		return nil, err
	}
	c.tools = c.maskedTools(o.Tools)
	return c, content.CheckBlocks(o.UserMessage)
}

func (c *call) warn(p Problem) {
	if c.ask.OnWarning != nil {
		c.ask.OnWarning(p)
	}
}

// compileOptions is what decides on a prompt, for compile and for generate.
func (c *call) compileOptions() compile.Options {
	o := compile.Options{
		Policy: priority.Policy{Strip: c.settings.Strip(), IncludeReasoning: c.include || c.settings.IncludeReasoning()},
		Budget: c.budget,
	}
	if c.target != nil {
		o.DropOpenReasoning = !c.target.NeedsReasoningInToolLoop()
	}
	if k, ok := c.target.(llm.ReasoningKeeper); ok {
		o.KeepToolReasoning = k.NeedsReasoningAfterToolLoop(c.modelSettings())
	}
	return o
}

// modelSettings is how the settings say the model is to be asked.
func (c *call) modelSettings() llm.Settings {
	v := c.settings
	s := llm.Settings{
		Model: v.Text("model"), MaxOutputTokens: v.Int("max_output_tokens"), Temperature: v.Float("temperature"), ToolChoice: v.Text("tool_choice"),
		Reasoning: llm.Reasoning{
			Disabled: !v.Bool("reasoning.enabled"), Effort: v.Text("reasoning.effort"), Summary: v.Text("reasoning.summary"),
			MaxTokens: v.Int("reasoning.max_tokens"), Native: v.Text("reasoning.format") == "native",
		},
		Extra: []byte(v.Text("request.extra")),
	}
	if c.plain {
		s.ToolChoice = ""
	}
	return s
}

// The times that RFC 3339 can express in UTC: from minTime to before maxTime.
var (
	minTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// checkTime refuses a time that cannot be written in RFC 3339.
func checkTime(t time.Time) error {
	if t.Before(minTime) || !t.Before(maxTime) {
		return fmt.Errorf("time %d seconds after 1970: want a year from 0 to 9999", t.Unix())
	}
	return nil
}
