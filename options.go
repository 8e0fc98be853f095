package tract

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/settings"
)

// Option says more about one call. An option that a call has no use for is
// ignored.
type Option func(*call) error

// call is what the options of a call say.
type call struct {
	settings  settings.Values
	author    string
	command   string
	operation *operation // that it is of, from the first batch on
	key       string
	label     commit.Label
	time      time.Time // that the commits are given
	now       time.Time
	priority  priority.Level
	role      content.Role
	source    commit.Source
	limit     int
	first     int // commits that a Log reads before it yields one; 0: some
	until     time.Time
	budget    int
	target    llm.Target
	reasoning *bool
	include   bool
	stream    *bool
	tools     []llm.Tool
	also      []content.Block
	textAt    string // revision that an edit takes its text from
	covers    commit.Cover
	ofReply   bool // the idempotency key is the id of a reply
	plain     bool // no tools, whatever the settings say
	force     bool
	here      bool // a rescued response goes where the branch is
	numbered  bool
	enforce   bool
	spent     func(Spent)
	warn      func(Problem)
	ready     func(*llm.Request)
	replied   func(*llm.Request, *llm.Response)
	observed  *Observed // nil: the exchange is ours
	watch     func(llm.Event)
	found     func([]Secret) // secrets; may be nil
}

func (r *Repo) call(opts []Option) (*call, error) {
	now := r.clock()
	c := &call{settings: r.settings, author: r.author, time: now, now: now, found: r.found}
	for _, opt := range opts {
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	c.tools = c.maskedTools()
	return c, nil
}

// Set gives one setting another value for this call.
func Set(key, value string) Option {
	return func(c *call) (err error) {
		c.settings, err = c.settings.With(key, value)
		return err
	}
}

// Settings gives the call other settings than those of the Repo.
func Settings(v settings.Values) Option {
	return func(c *call) error { c.settings = v; return nil }
}

// IncludeReasoning sends past reasoning that is left out only by default.
func IncludeReasoning() Option { return func(c *call) error { c.include = true; return nil } }

// WithReasoning says whether the thoughts of a reply are committed. They are on
// the Response either way. When they led to a tool call whose provider wants them back,
// the Branch remembers them until the tool loop closes: go on with the same *Branch.
// Another one, or another process, refuses before it sends (rule reasoning-not-kept).
func WithReasoning(yes bool) Option {
	return func(c *call) error { c.reasoning = &yes; return nil }
}

// Budget is the most tokens that a prompt may take.
func Budget(tokens int) Option {
	return func(c *call) error {
		if tokens < 0 {
			return fmt.Errorf("budget of %d tokens: want 0 or more", tokens)
		}
		c.budget = tokens
		return nil
	}
}

// Tools is what the model may call.
func Tools(tools ...llm.Tool) Option { return func(c *call) error { c.tools = tools; return nil } }

// OnRequest sees each request when it is ready, before it is sent.
func OnRequest(f func(*llm.Request)) Option { return func(c *call) error { c.ready = f; return nil } }

// OnReply sees each answer when all of it is there, or what came before it broke off,
// with the request as it was sent. It is called before anything is committed.
func OnReply(f func(*llm.Request, *llm.Response)) Option {
	return func(c *call) error { c.replied = f; return nil }
}

// OnWarning sees what a provider may answer less well because of, and, with
// [Force], what it would refuse.
func OnWarning(f func(Problem)) Option { return func(c *call) error { c.warn = f; return nil } }

// Force sends a request although a rule says that it will be refused. Calls that
// wait for a result are refused all the same.
func Force() Option { return func(c *call) error { c.force = true; return nil } }

// Here lets [Branch.TakeRescue] commit a response on top of a branch that is no longer
// at the commit which the response answered.
func Here() Option { return func(c *call) error { c.here = true; return nil } }

// Also puts a message of the user after the prompt of a Request, as if its
// blocks had been added.
func Also(blocks ...content.Block) Option {
	return func(c *call) error {
		c.also = blocks
		return content.CheckBlocks(blocks)
	}
}

// TextAt gives an Edit without a text that which the block has at a revision. A revision
// that is an edit of the block, or the block itself, is that text.
func TextAt(rev string) Option { return func(c *call) error { c.textAt = rev; return nil } }

// OnEvent sees the answer as it comes. It is called by the goroutine that asks.
func OnEvent(f func(llm.Event)) Option { return func(c *call) error { c.watch = f; return nil } }

// Stream says whether to ask for the answer as it comes. Generate and Chat do
// when the client can; Prepare does when told.
func Stream(yes bool) Option { return func(c *call) error { c.stream = &yes; return nil } }

// Key makes a call safe to repeat: when one of the last 1,000 commits of the
// branch has the key, nothing is done and what was done then is returned. Other content
// under the same key is a *[KeyError].
func Key(k string) Option { return func(c *call) error { c.key = k; return nil } }

// Author names who makes the commits.
func Author(name string) Option { return func(c *call) error { c.author = name; return nil } }

// Label puts a line on the commit.
func Label(text string) Option { return func(c *call) error { c.label.Text = text; return nil } }

// Meta puts a named value on the commit.
func Meta(key, value string) Option {
	return func(c *call) error {
		if c.label.Meta == nil {
			c.label.Meta = map[string]string{}
		}
		c.label.Meta[key] = value
		return nil
	}
}

// Priority gives the commit a priority of its own.
func Priority(l priority.Level) Option { return func(c *call) error { c.priority = l; return nil } }

// Role says who says the block, when not who usually does.
func Role(r content.Role) Option { return func(c *call) error { c.role = r; return nil } }

// Time is when the commit says it was made, in the years 0 to 9999 of UTC.
func Time(t time.Time) Option {
	return func(c *call) error {
		c.time = t
		return checkTime(t)
	}
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

// Command names the command that moves a ref, for the ref log: a word, never
// arguments.
func Command(name string) Option { return func(c *call) error { c.command = name; return nil } }

// Limit is the most commits of a Log.
func Limit(n int) Option { return func(c *call) error { c.limit = n; return nil } }

// First is how many commits a Log reads together at first, for who knows about how
// many it will take. What comes after them is read when it is asked for.
func First(n int) Option { return func(c *call) error { c.first = n; return nil } }

// Numbered counts the turns of what Traces and Replies yield, which takes a walk
// to the root before the first.
func Numbered() Option { return func(c *call) error { c.numbered = true; return nil } }

// OnBudget is told once when the thoughts of a session reach the part of a budget
// at which to warn (80 % of reasoning.budget or reasoning.budgets):
// by estimate while they come, else when the reply tells what they cost.
func OnBudget(f func(Spent)) Option { return func(c *call) error { c.spent = f; return nil } }

// Enforce refuses to ask when a budget of the session is used up: *[BudgetError].
func Enforce() Option { return func(c *call) error { c.enforce = true; return nil } }

// Until compiles the history as it was at a time.
func Until(t time.Time) Option { return func(c *call) error { c.until = t; return nil } }

// For compiles for a target.
func For(t llm.Target) Option { return func(c *call) error { c.target = t; return nil } }
