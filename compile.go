package tract

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// CompileOptions are the options of [Repo.Compile].
type CompileOptions struct {
	Settings         map[string]string // by name, such as "reasoning.effort"; they override those of the Repo; an empty value stands for the default
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Until            time.Time         // compile the history as it was at this time; zero: all of it
	Target           llm.Target        // decides which reasoning is sent; nil: no provider in particular
}

// Compile returns the prompt of a revision, as it was when the revision was the tip; with
// Until, as it was at that time. The result also depends on the options and on the
// "reasoning." settings.
func (r *Repo) Compile(ctx context.Context, rev string, o CompileOptions) (*compile.Prompt, error) {
	c, err := r.resolveCompile(o)
	if err != nil {
		return nil, err
	}
	return r.compile(ctx, rev, c)
}

// compile is Compile with resolved options.
func (r *Repo) compile(ctx context.Context, rev string, c *callOptions) (*compile.Prompt, error) {
	id, err := r.Resolve(ctx, rev)
	if err == nil && !c.until.IsZero() {
		id, err = r.resolverWithoutHead().At(ctx, id, c.until)
	}
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return compile.Chain(ctx, r.store, id, c.compilerOptions())
}

// RequestOptions are the options of [Repo.Request] and [Repo.Check].
type RequestOptions struct {
	Settings         map[string]string // as in [CompileOptions]
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Until            time.Time         // compile the history as it was at this time; zero: all of it
	Tools            []llm.Tool        // that the model may call
	Stream           bool              // ask for a stream
	UserMessage      []content.Block   // a user message after the prompt, as if it had been appended; not used by Check
}

// Request returns the request that would be sent to a target for a revision, with its whole
// body, without sending it. The empty revision stands for a history without commits. Tool
// calls may still wait for their results.
func (r *Repo) Request(ctx context.Context, rev string, t llm.Target, o RequestOptions) (*llm.Request, error) {
	c, err := r.resolveRequest(o, t)
	if err != nil {
		return nil, err
	}
	req := &llm.Request{Tools: c.tools, Settings: c.modelSettings(), Stream: o.Stream}
	if rev != "" {
		p, err := r.compile(ctx, rev, c)
		if err != nil {
			return nil, err
		}
		req.Messages = p.Messages
	}
	if len(o.UserMessage) > 0 {
		req.Messages = append(req.Messages, content.Message{Role: content.RoleUser, Blocks: c.newMasker().Blocks(o.UserMessage)})
	}
	if req.Body, err = t.Encode(req); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return req, nil
}
