package tract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Response is what came of asking a model.
type Response struct {
	Text             string             // the answer
	Reasoning        string             // the readable thoughts
	ToolCalls        []content.ToolCall // those that wait for a result
	Blocks           []content.Block    // all of it, in the order of the wire
	Commits          []objects.ID       // what was committed, in order
	ReasoningCommits []objects.ID       // those of them that are thoughts
	Usage            content.Usage
	Finish           string            // the provider's finish reason
	ID               string            // as the provider names it; empty: it has no id
	Model            string            // as the provider names it
	Config           map[string]string // the settings that the request was made with
	Manifest         objects.ID        // what the request was made of
	Raw              []byte            // the provider's answer as it came, where the client keeps it
	Warnings         []Problem         // what the provider did not do as it was asked to, and what check warned of
}

// Exchange is a request that is ready to be sent, and what its reply will need
// to land.
type Exchange struct {
	Target   llm.Target        // nil: the client's own form
	Request  *llm.Request      // what is asked; nil when a response under the same key was committed before: send nothing then, and Accept returns it
	Body     []byte            // the whole request body; nil without a Target, or when the response is known
	Manifest *compile.Manifest // what it was made of
	Prompt   *compile.Prompt

	call    *call
	tip     objects.ID   // the reply insists on it
	done    []objects.ID // a reply with this idempotency key is there already
	tools   *objects.Object
	sent    []byte // as the client tells
	unkept  int    // thoughts in it that no commit has
	warned  []Problem
	meter   *meter // nil: there is no budget
	started time.Time
	first   time.Duration
}

// Generate asks the model and commits what it says: the thoughts before the
// answer, in one transaction. The answer lands on the tip that the question was
// compiled from. When it cannot, because the branch moved (*[ConflictError]) or
// the answer broke off (*[IncompleteError]), it is kept under a rescue ref and
// is on the error. When the store could not take it, that is an *[UnsavedError]. While tool
// calls wait for results nothing is sent: *[PendingError]. A request that the provider would
// refuse is a *[RuleError].
//
// With the setting reasoning.commit=false the reasoning is not committed; it is on the
// Response either way. Reasoning that led to a tool call whose provider wants it back stays
// with the Branch, in memory, until the tool loop closes: go on with the same *Branch.
// Another one, or another process, refuses before it sends (rule reasoning-not-kept).
func (b *Branch) Generate(ctx context.Context, client llm.Client, o AskOptions) (*Response, error) {
	c, err := b.repo.asking(o)
	if err != nil {
		return nil, err
	}
	return b.generate(ctx, c, client, !o.NoStream)
}

func (b *Branch) generate(ctx context.Context, c *call, client llm.Client, stream bool) (*Response, error) {
	c.target, _ = client.(llm.Target)
	streamer, streams := client.(llm.Streamer)
	x, err := b.prepare(ctx, c, streams && stream)
	if err != nil {
		return nil, err
	}
	if len(x.done) > 0 {
		return b.recall(ctx, x.done)
	}
	x.started = b.repo.clock()
	x.Request.OnSent = func(body []byte) { x.sent = body }
	x.Request.OnWarning = func(p llm.Problem) { x.warn(Problem{Problem: p}) }
	ctx = llm.SkipRecording(ctx)
	var reply *llm.Response
	if x.Request.Stream {
		reply, err = llm.Collect(streamer.Stream(ctx, x.Request), x.watch(b.repo.clock))
	} else {
		reply, err = client.Generate(ctx, x.Request)
	}
	reply, err = known(reply, err)
	if extractor, ok := client.(llm.ReasoningExtractor); ok && reply != nil && !hasReasoning(reply.Blocks) {
		if blocks := extractor.ExtractReasoning(reply); blocks != nil {
			reply.Blocks = blocks
			reply, err = known(reply, err)
		}
	}
	x.replied(reply)
	return b.land(ctx, x, reply, err)
}

// Ask appends a user message and calls Generate, as one [Operation]. When Generate fails the
// message stays: call Generate to ask again, or Ask with the same key, which does not append
// it twice.
func (b *Branch) Ask(ctx context.Context, client llm.Client, text string, o AskOptions) (*Response, error) {
	ctx = history.InOperation(ctx, "ask")
	if _, err := b.Append(ctx, []content.Block{content.User(text)}, AppendOptions{Author: o.Author, Key: o.Key, OnWarning: o.OnWarning}); err != nil {
		return nil, err
	}
	return b.Generate(ctx, client, o)
}

// Prepare makes the request that Generate would send, for programs with their
// own transport: send Body, then give the answer to [Branch.Accept]. It uses no
// network and writes nothing.
func (b *Branch) Prepare(ctx context.Context, target llm.Target, o PrepareOptions) (*Exchange, error) {
	c, err := b.repo.asking(o.AskOptions)
	if err != nil {
		return nil, err
	}
	c.target = target
	return b.prepare(ctx, c, o.Stream)
}

// Accept reads the answer to an exchange, in whatever framing it came, and
// commits it as Generate does.
func (b *Branch) Accept(ctx context.Context, x *Exchange, body io.Reader) (*Response, error) {
	if x.Target == nil {
		return nil, fmt.Errorf("accept: the exchange was prepared without a target, so nothing can read its answer")
	}
	if len(x.done) > 0 {
		return b.recall(ctx, x.done)
	}
	reply, err := known(llm.Collect(x.Target.Decode(body), x.watch(b.repo.clock)))
	x.replied(reply)
	return b.land(ctx, x, reply, err)
}

// known is a reply without the blocks that content.CheckBlock refuses, and with an error
// for them: what remains of the reply was paid for, and is kept as that of a broken one.
func known(reply *llm.Response, err error) (*llm.Response, error) {
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

// watch sees each event of the answer as it comes.
func (x *Exchange) watch(clock func() time.Time) func(llm.Event) {
	return func(e llm.Event) {
		if x.first == 0 && e.Type != llm.HeadDone && !x.started.IsZero() {
			x.first = clock().Sub(x.started)
		}
		x.meter.event(e)
		if x.call.ask.OnEvent != nil {
			x.call.ask.OnEvent(e)
		}
	}
}

// replied tells the caller of an answer.
func (x *Exchange) replied(reply *llm.Response) {
	if x.call.ask.OnResponse == nil || reply == nil {
		return
	}
	req, from := *x.Request, *reply
	if x.sent != nil {
		req.Body = x.sent
	}
	if x.Target != nil {
		from.From = x.Target.Address()
	}
	x.call.ask.OnResponse(&req, &from)
}

// prepare makes an exchange.
func (b *Branch) prepare(ctx context.Context, c *call, stream bool) (*Exchange, error) {
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if tip.IsZero() {
		return nil, b.errNoCommits("generate")
	}
	x := &Exchange{Target: c.target, call: c, tip: tip, started: b.repo.clock()}
	if !c.key.IsZero() {
		if x.done, err = b.keyed(ctx, tip, c.key); err != nil || len(x.done) > 0 {
			return x, err
		}
	}
	if err := b.fill(ctx, x, stream); err != nil {
		return nil, err
	}
	return x, nil
}

// fill makes the request of an exchange from its tip.
func (b *Branch) fill(ctx context.Context, x *Exchange, stream bool) (err error) {
	c := x.call
	x.Prompt, err = compile.Chain(ctx, b.repo.store, x.tip, c.compileOptions())
	if err != nil {
		return err
	}
	if calls := x.Prompt.Pending; len(calls) > 0 {
		return pendingError(b.name, calls)
	}
	messages, kept := b.withUnkept(x)
	for _, thoughts := range kept {
		x.unkept += len(thoughts)
	}
	if len(messages) == 0 {
		return fmt.Errorf("generate: %w", &refs.UnknownError{Rev: b.name, Why: "everything on it is left out of the prompt; see compile --explain"})
	}
	x.Request = &llm.Request{Messages: messages, Tools: c.tools, Settings: c.modelSettings(), Stream: stream}
	if x.Target != nil {
		if x.Body, err = x.Target.Encode(x.Request); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
		x.Request.Body = x.Body
	}
	if err := b.check(ctx, x, kept); err != nil {
		return err
	}
	if x.meter, err = b.meter(ctx, c, x.Prompt, x.asks()); err != nil {
		return err
	}
	if c.ask.OnRequest != nil {
		c.ask.OnRequest(x.Request)
	}
	return b.manifest(ctx, x)
}

// asks is the model that is asked, as far as that is known.
func (x *Exchange) asks() string {
	if model := x.Request.Settings.Model; model != "" || x.Target == nil {
		return model
	}
	return x.Target.Address().Model
}

// check looks for what the provider would refuse the request for.
func (b *Branch) check(ctx context.Context, x *Exchange, kept map[objects.ID][]content.Block) error {
	problems, err := b.repo.problems(ctx, x.Prompt, x.Target, x.Request, kept)
	if err != nil {
		return err
	}
	var refused []Problem
	for _, p := range problems {
		if !p.Warning && !x.call.ask.Force {
			refused = append(refused, p)
		} else {
			x.warn(p)
		}
	}
	if len(refused) > 0 {
		return &RuleError{Problems: refused}
	}
	return nil
}

// warn tells the caller, and keeps it for the response.
func (x *Exchange) warn(p Problem) {
	x.warned = append(x.warned, p)
	x.call.warn(p)
}

func pendingError(branch string, pending []compile.Pending) error {
	e := &PendingError{Branch: branch}
	for _, p := range pending {
		e.Calls = append(e.Calls, p.Call)
	}
	return e
}

// manifest writes down what the request is made of.
func (b *Branch) manifest(ctx context.Context, x *Exchange) error {
	s := x.Request.Settings
	m := &compile.Manifest{
		Head: x.tip, Options: x.call.compileOptions(), Model: s.Model, ToolChoice: s.ToolChoice,
		RequestSettings: history.Asked(x.Request), UncommittedReasoning: x.unkept,
	}
	if extra := m.RequestSettings[history.AskedExtra]; extra != "" {
		masking := x.call.masking()
		m.RequestSettings[history.AskedExtra] = masking.Setting(extra)
		x.call.tell(masking.found)
	}
	if x.Target != nil {
		at := x.Target.Address()
		m.Provider, m.Dialect, m.Encoder = at.Provider, at.Dialect, at.Encoder
		m.Compiled = objects.Hash(x.Body)
		if m.Model == "" {
			m.Model = at.Model
		}
	}
	if len(x.Request.Tools) > 0 {
		tools := objects.New(objects.KindTools, nil, nil, llm.AppendTools(nil, x.Request.Tools))
		if err := tools.Check(); err != nil {
			return fmt.Errorf("generate: tool definitions: %w", err)
		}
		x.tools, m.Tools = &tools, tools.ID
	}
	prev, err := b.lastOrigin(ctx, x.Prompt)
	if err != nil {
		return err
	}
	var before []bool
	if prev != nil && !prev.Manifest.IsZero() {
		m.Prev = prev.Manifest
		if before, err = compile.ReadSentFlags(ctx, b.repo.store, m.Prev); err != nil {
			return err
		}
	}
	m.SetSentFlags(before, x.Prompt.SentFlags())
	x.Manifest = m
	return nil
}

// lastOrigin is where the last reply of a model on the history came from; nil
// when there is none.
func (b *Branch) lastOrigin(ctx context.Context, p *compile.Prompt) (*commit.Origin, error) {
	var last objects.ID
	for i := len(p.Entries) - 1; i >= 0; i-- {
		e := &p.Entries[i]
		if e.Op != commit.Append || e.Role != content.RoleAssistant && e.Role != content.NoRole || e.Origin().IsZero() || e.Origin() == last {
			continue
		}
		last = e.Origin()
		o, err := commit.ReadOrigin(ctx, b.repo.store, last)
		if err != nil || o.Source == commit.SourceModel {
			return o, err
		}
	}
	return nil, nil
}
