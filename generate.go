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
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
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
	Request  *llm.Request      // what is asked
	Body     []byte            // the whole request body; nil without a Target
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
// is on the error. Calls that wait for a result are a *[PendingError].
func (b *Branch) Generate(ctx context.Context, client llm.Client, opts ...Option) (*Response, error) {
	target, _ := client.(llm.Target)
	streamer, streams := client.(llm.Streamer)
	x, err := b.prepare(ctx, target, streams, streams, opts)
	if err != nil {
		return nil, err
	}
	if len(x.done) > 0 {
		return b.recall(ctx, x.done)
	}
	x.started = b.repo.clock()
	x.Request.OnSent = func(body []byte) { x.sent = body }
	x.Request.OnWarning = func(p llm.Problem) { x.warn(Problem{Problem: p}) }
	ctx = llm.Keep(ctx)
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

// Chat adds what a person says and asks the model. When asking fails what was
// said stays, and Generate asks again.
func (b *Branch) Chat(ctx context.Context, client llm.Client, text string, opts ...Option) (*Response, error) {
	return b.Ask(ctx, client, []content.Block{content.User(text)}, opts...)
}

// Ask is Chat for a turn of any blocks, such as an image and a question.
func (b *Branch) Ask(ctx context.Context, client llm.Client, blocks []content.Block, opts ...Option) (*Response, error) {
	opts = append([]Option{Command("chat")}, opts...)
	c, err := b.repo.call(opts)
	if err != nil {
		return nil, err
	}
	reply := opts
	if c.key != "" {
		reply = append(reply[:len(reply):len(reply)], Key(c.key+"#reply"))
	}
	ctx = inOperation(ctx)
	if _, err := b.Append(ctx, blocks, opts...); err != nil {
		return nil, err
	}
	return b.Generate(ctx, client, reply...)
}

// Prepare makes the request that Generate would send, for programs with their
// own transport: send Body, then give the answer to [Branch.Accept]. It uses no
// network and writes nothing.
func (b *Branch) Prepare(ctx context.Context, target llm.Target, opts ...Option) (*Exchange, error) {
	return b.prepare(ctx, target, true, false, opts)
}

// Accept reads the answer to an exchange, in whatever framing it came, and
// commits it as Generate does.
func (b *Branch) Accept(ctx context.Context, x *Exchange, body io.Reader, opts ...Option) (*Response, error) {
	if x.Target == nil {
		return nil, fmt.Errorf("accept: the exchange was prepared without a target, so nothing can read its answer")
	}
	for _, opt := range opts {
		if err := opt(x.call); err != nil {
			return nil, err
		}
	}
	if len(x.done) > 0 {
		return b.recall(ctx, x.done)
	}
	x.observe()
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
		if x.call.watch != nil {
			x.call.watch(e)
		}
	}
}

// replied tells the caller of an answer.
func (x *Exchange) replied(reply *llm.Response) {
	if x.call.replied == nil || reply == nil {
		return
	}
	req, from := *x.Request, *reply
	if x.sent != nil {
		req.Body = x.sent
	}
	if x.Target != nil {
		from.From = x.Target.Address()
	}
	x.call.replied(&req, &from)
}

// prepare makes an exchange. canStream is whether its answer may come as it is
// made, stream whether it does when nobody says otherwise.
func (b *Branch) prepare(ctx context.Context, target llm.Target, canStream, stream bool, opts []Option) (*Exchange, error) {
	c, err := b.repo.call(opts)
	if err != nil {
		return nil, err
	}
	c.target = target
	if c.stream != nil {
		stream = canStream && *c.stream
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if tip.IsZero() {
		return nil, b.errNoCommits("generate")
	}
	x := &Exchange{Target: target, call: c, tip: tip, started: b.repo.clock()}
	if c.key != "" {
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
	if c.ready != nil {
		c.ready(x.Request)
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
		if !p.Warning && !x.call.force {
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
	if x.call.warn != nil {
		x.call.warn(p)
	}
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
		Asked: asked(x.Request), Unkept: x.unkept,
	}
	if extra := m.Asked[askedExtra]; extra != "" {
		masking := x.call.masking()
		m.Asked[askedExtra] = masking.setting(extra)
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
		if before, err = compile.ReadFlags(ctx, b.repo.store, m.Prev); err != nil {
			return err
		}
	}
	m.SetFlags(before, x.Prompt.Flags())
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

// modelSettings is how the settings say the model is to be asked.
func (c *call) modelSettings() llm.Settings {
	if c.observed != nil {
		return c.observed.Request.Settings
	}
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
