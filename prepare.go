package tract

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Exchange is a request that is ready to be sent, with the state that is needed to commit
// its response.
type Exchange struct {
	Target   llm.Target        // nil: the client does not report what it sends
	Request  *llm.Request      // nil when an earlier response has the same idempotency key: send nothing then, and Accept returns that response
	Body     []byte            // the whole request body; nil without a Target, or when there is an earlier response
	Manifest *compile.Manifest // the record of what is sent
	Prompt   *compile.Prompt

	options        *callOptions
	tip            objects.ID       // the commit that the response must follow
	earlierCommits []objects.ID     // commits of an earlier response with the same idempotency key
	toolObjects    []objects.Object // the object of the tool definitions; empty without tools
	sentBody       []byte           // the body, as the client reports it
	uncommitted    int              // number of reasoning blocks that no commit has
	warnings       []Problem
	meter          *budgetMeter // nil: there is no budget
	started        time.Time
	firstToken     time.Duration
}

// PrepareOptions are the options of [Branch.Prepare]. Its functions are called by Prepare
// and by Accept.
type PrepareOptions struct {
	AskOptions      // NoStream is not used
	Stream     bool // ask for a stream
}

// Prepare makes the request that Generate would send, for programs with their own
// transport: send Body, then give the response to [Branch.Accept]. It uses no network and
// writes nothing.
func (b *Branch) Prepare(ctx context.Context, target llm.Target, o PrepareOptions) (*Exchange, error) {
	c, err := b.repo.resolveAsk(o.AskOptions)
	if err != nil {
		return nil, err
	}
	c.target = target
	return b.prepareOrFindEarlier(ctx, c, o.Stream)
}

// prepareOrFindEarlier makes an exchange. When an earlier response has the idempotency key, the exchange
// has no request: it only has the commits of that response.
func (b *Branch) prepareOrFindEarlier(ctx context.Context, c *callOptions, stream bool) (*Exchange, error) {
	tip, err := b.requireTip(ctx, "generate")
	if err != nil {
		return nil, err
	}
	x := &Exchange{Target: c.target, options: c, tip: tip, started: b.repo.clock()}
	if !c.key.IsZero() {
		if x.earlierCommits, err = b.lastCommitsWithKey(ctx, tip, c.key); err != nil || len(x.earlierCommits) > 0 {
			return x, err
		}
	}
	if err := b.buildRequest(ctx, x, stream); err != nil {
		return nil, err
	}
	return x, nil
}

// buildRequest compiles the prompt of an exchange at its tip, encodes and checks the
// request, and makes the manifest.
func (b *Branch) buildRequest(ctx context.Context, x *Exchange, stream bool) (err error) {
	c := x.options
	x.Prompt, err = compile.Chain(ctx, b.repo.store, x.tip, c.compilerOptions())
	if err != nil {
		return err
	}
	if calls := x.Prompt.Pending; len(calls) > 0 {
		return newPendingError(b.name, calls)
	}
	messages, uncommitted := x.Prompt.Messages, b.forgetReasoningOfClosedTurns(x)
	if x.Target != nil && !x.Target.NeedsReasoningInToolLoop() {
		uncommitted = nil
	}
	if len(uncommitted) > 0 {
		messages = insertReasoning(x.Prompt, uncommitted)
	}
	for _, thoughts := range uncommitted {
		x.uncommitted += len(thoughts)
	}
	if len(messages) == 0 {
		return fmt.Errorf("generate: %w", &refs.UnknownError{Rev: b.name, Why: "its prompt is empty: everything is left out; see tract compile --explain"})
	}
	x.Request = &llm.Request{Messages: messages, Tools: c.tools, Settings: c.modelSettings(), Stream: stream}
	if x.Target != nil {
		if x.Body, err = x.Target.Encode(x.Request); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
		x.Request.Body = x.Body
	}
	if err := b.checkRequest(ctx, x, uncommitted); err != nil {
		return err
	}
	if x.meter, err = b.newBudgetMeter(ctx, c, x.Prompt, x.modelName()); err != nil {
		return err
	}
	if c.ask.OnRequest != nil {
		c.ask.OnRequest(x.Request)
	}
	return b.buildManifest(ctx, x)
}

// modelName returns the model of the request; empty when only the client knows it.
func (x *Exchange) modelName() string {
	if model := x.Request.Settings.Model; model != "" || x.Target == nil {
		return model
	}
	return x.Target.Address().Model
}

// checkRequest returns a *[RuleError] when the provider would refuse the request.
func (b *Branch) checkRequest(ctx context.Context, x *Exchange, uncommitted map[objects.ID][]content.Block) error {
	problems, err := b.repo.requestProblems(ctx, x.Prompt, x.Target, x.Request, uncommitted)
	if err != nil {
		return err
	}
	var refused []Problem
	for _, p := range problems {
		if !p.Warning && !x.options.ask.Force {
			refused = append(refused, p)
		} else {
			x.addWarning(p)
		}
	}
	if len(refused) > 0 {
		return &RuleError{Problems: refused}
	}
	return nil
}

// addWarning calls OnWarning and keeps the problem for the response.
func (x *Exchange) addWarning(p Problem) {
	x.warnings = append(x.warnings, p)
	x.options.callOnWarning(p)
}

// newManifest returns the manifest of a request, with the fields that the request
// determines, and the object of its tool definitions, if it has any.
func (c *callOptions) newManifest(head objects.ID, req *llm.Request) (*compile.Manifest, []objects.Object, error) {
	m := &compile.Manifest{
		Head: head, Options: c.compilerOptions(), Model: req.Settings.Model, ToolChoice: req.Settings.ToolChoice,
		RequestSettings: history.RequestSettings(req),
	}
	if extra := m.RequestSettings[history.SettingExtra]; extra != "" {
		masking := c.newMasker()
		m.RequestSettings[history.SettingExtra] = masking.Setting(extra)
		c.callOnSecrets(masking.found)
	}
	if len(req.Tools) == 0 {
		return m, nil, nil
	}
	tools := objects.New(objects.KindTools, nil, nil, llm.AppendTools(nil, req.Tools))
	if err := tools.Check(); err != nil {
		return nil, nil, fmt.Errorf("tool definitions: %w", err)
	}
	m.Tools = tools.ID
	return m, []objects.Object{tools}, nil
}

// buildManifest makes the manifest of an exchange, without the hash of the body that the
// client sends: see finishManifest.
func (b *Branch) buildManifest(ctx context.Context, x *Exchange) error {
	m, tools, err := x.options.newManifest(x.tip, x.Request)
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	x.toolObjects, m.UncommittedReasoning = tools, x.uncommitted
	if x.Target != nil {
		at := x.Target.Address()
		m.Provider, m.Dialect, m.Encoder = at.Provider, at.Dialect, at.Encoder
		m.Compiled = objects.Hash(x.Body)
		m.Model = cmp.Or(m.Model, at.Model)
	}
	prev, err := b.lastResponseOrigin(ctx, x.Prompt)
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

// lastResponseOrigin returns the origin of the last response on the history; nil when there
// is none.
func (b *Branch) lastResponseOrigin(ctx context.Context, p *compile.Prompt) (*commit.Origin, error) {
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

// eventHandler returns the function that is called with each event of the response.
func (x *Exchange) eventHandler(clock func() time.Time) func(llm.Event) {
	return func(e llm.Event) {
		if x.firstToken == 0 && e.Type != llm.HeadDone && !x.started.IsZero() {
			x.firstToken = clock().Sub(x.started)
		}
		x.meter.countEvent(e)
		if x.options.ask.OnEvent != nil {
			x.options.ask.OnEvent(e)
		}
	}
}

// callOnResponse calls OnResponse.
func (x *Exchange) callOnResponse(reply *llm.Response) {
	if x.options.ask.OnResponse == nil || reply == nil {
		return
	}
	req, from := *x.Request, *reply
	if x.sentBody != nil {
		req.Body = x.sentBody
	}
	if x.Target != nil {
		from.From = x.Target.Address()
	}
	x.options.ask.OnResponse(&req, &from)
}
