package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// AskOptions are the options of a request to a model. The functions are called by the
// goroutine that makes the request.
type AskOptions struct {
	Settings         map[string]string // as in [CompileOptions]
	Author           string            // of the entry in the ref log; empty: the author of the Repo
	Key              string            // idempotency key: when one of the last 1,000 commits belongs to a response with this key, that response is returned and nothing is sent
	Budget           int               // most tokens of the prompt, by estimate; 0: no limit
	IncludeReasoning bool              // send past reasoning that is left out only by default
	Tools            []llm.Tool        // that the model may call
	NoStream         bool              // wait for the whole response, although the client can stream
	Force            bool              // send a request although a rule says that the provider will refuse it; while tool calls wait for results, nothing is sent even so
	EnforceBudgets   bool              // fail with a *[BudgetError] when a reasoning budget of the session is used up

	OnRequest  func(*llm.Request)                // is called with the request before it is sent
	OnEvent    func(llm.Event)                   // is called with each event of a stream
	OnResponse func(*llm.Request, *llm.Response) // is called before the commit, with the request as it was sent and the response, complete or not
	OnWarning  func(Problem)                     // is called with each problem that does not stop the request, also with those that Force passes over
	OnBudget   func(BudgetUsage)                 // is called once for each reasoning budget, when 80 % of it is used
}

// Response is the result of a request to a model.
type Response struct {
	Text             string             // the answer
	Reasoning        string             // the readable reasoning
	ToolCalls        []content.ToolCall // those that wait for a result
	Blocks           []content.Block    // the whole response, in the order of the wire
	Commits          []objects.ID       // what was committed, in order
	ReasoningCommits []objects.ID       // those of Commits that are reasoning
	Usage            content.Usage
	Finish           string            // the provider's finish reason
	ID               string            // as the provider names the response; empty: it has no id
	Model            string            // as the provider names it
	Config           map[string]string // the settings that the request was made with
	Manifest         objects.ID        // of the request
	Raw              []byte            // the body of the response as it came; nil when the client does not keep it
	Warnings         []Problem         // requested settings that the provider did not follow, and the warnings of the checks before sending
}

// Ask appends a user block and calls Generate, as one [Operation]. When Generate fails, the
// block stays: call Generate to ask again, or Ask with the same key, which does not append
// it twice.
func (b *Branch) Ask(ctx context.Context, client llm.Client, text string, o AskOptions) (*Response, error) {
	ctx = history.InOperation(ctx, "ask")
	if _, err := b.Append(ctx, []content.Block{content.User(text)}, AppendOptions{Author: o.Author, Key: o.Key, OnWarning: o.OnWarning}); err != nil {
		return nil, err
	}
	return b.Generate(ctx, client, o)
}

// Generate asks the model and commits its response: the reasoning before the answer, in one
// transaction. The response follows the tip that the prompt was compiled from. When the
// branch moved meanwhile (*[ConflictError]) or the response is incomplete
// (*[IncompleteError]), it is kept under a rescue ref and is on the error. When the store
// could not take it, the error is an *[UnsavedError]. While tool calls wait for results
// nothing is sent: *[PendingError]. A request that the provider would refuse is a
// *[RuleError].
//
// With the setting reasoning.commit=false the reasoning is not committed; it is on the
// Response either way. Reasoning before a tool call whose provider wants it back stays in
// the memory of the Branch until the tool loop closes: continue with the same *Branch.
// Another one, or another process, refuses before it sends (rule reasoning-not-kept).
func (b *Branch) Generate(ctx context.Context, client llm.Client, o AskOptions) (*Response, error) {
	c, err := b.repo.resolveAsk(o)
	if err != nil {
		return nil, err
	}
	return b.generate(ctx, c, client, !o.NoStream)
}

// generate is Generate with resolved options.
func (b *Branch) generate(ctx context.Context, c *callOptions, client llm.Client, stream bool) (*Response, error) {
	c.target, _ = client.(llm.Target)
	streamer, streams := client.(llm.Streamer)
	x, err := b.prepareOrFindEarlier(ctx, c, streams && stream)
	if err != nil {
		return nil, err
	}
	if len(x.earlierCommits) > 0 {
		return b.loadResponse(ctx, x.earlierCommits)
	}
	x.started = b.repo.clock()
	x.Request.OnSent = func(body []byte) { x.sentBody = body }
	x.Request.OnWarning = func(p llm.Problem) { x.addWarning(Problem{Problem: p}) }
	ctx = llm.SkipRecording(ctx)
	var reply *llm.Response
	if x.Request.Stream {
		reply, err = llm.Collect(streamer.Stream(ctx, x.Request), x.eventHandler(b.repo.clock))
	} else {
		reply, err = client.Generate(ctx, x.Request)
	}
	reply, err = dropInvalidBlocks(reply, err)
	if extractor, ok := client.(llm.ReasoningExtractor); ok && reply != nil && !hasReasoning(reply.Blocks) {
		if blocks := extractor.ExtractReasoning(reply); blocks != nil {
			reply.Blocks = blocks
			reply, err = dropInvalidBlocks(reply, err)
		}
	}
	x.callOnResponse(reply)
	return b.commitOrRescue(ctx, x, reply, err)
}

// dropInvalidBlocks returns a response without the blocks that content.CheckBlock refuses,
// and an error for them. The other blocks were paid for, so they are kept like an incomplete
// response.
func dropInvalidBlocks(reply *llm.Response, err error) (*llm.Response, error) {
	if reply == nil {
		return nil, err
	}
	bad := content.CheckBlocks(reply.Blocks)
	if bad == nil {
		return reply, err
	}
	rest := *reply
	rest.Blocks = slices.DeleteFunc(slices.Clone(reply.Blocks), func(b content.Block) bool { return content.CheckBlock(b) != nil })
	return &rest, errors.Join(err, fmt.Errorf("the client's response: %w", bad))
}

func hasReasoning(blocks []content.Block) bool {
	for _, b := range blocks {
		if b.Kind() == content.KindReasoning {
			return true
		}
	}
	return false
}
