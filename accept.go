package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Accept reads the response to an exchange, in whatever framing it came, and commits it as
// Generate does.
func (b *Branch) Accept(ctx context.Context, x *Exchange, body io.Reader) (*Response, error) {
	if x.Target == nil {
		return nil, fmt.Errorf("accept: the exchange was prepared without a target, so the response cannot be decoded")
	}
	if len(x.earlierCommits) > 0 {
		return b.loadResponse(ctx, x.earlierCommits)
	}
	reply, err := dropInvalidBlocks(llm.Collect(x.Target.Decode(body), x.eventHandler(b.repo.clock)))
	x.callOnResponse(reply)
	return b.commitOrRescue(ctx, x, reply, err)
}

// UnsavedError is the error for a response that could not be written to the store. The
// error holds the only copy of the response.
type UnsavedError struct {
	Response *Response
	Cause    error
}

// Error describes the cause.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("generate: the response could not be stored: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *UnsavedError) Unwrap() error { return e.Cause }

// commitOrRescue commits a complete response, and keeps an incomplete one, or one whose branch has
// moved, under a rescue ref: then it returns an error that holds the response. cause is the reason
// why it is incomplete; nil when it is complete.
func (b *Branch) commitOrRescue(ctx context.Context, x *Exchange, reply *llm.Response, cause error) (*Response, error) {
	if reply == nil || cause != nil && len(reply.Blocks) == 0 {
		if cause == nil {
			cause = errors.New("the client returned no response")
		}
		return nil, fmt.Errorf("generate: %w", cause)
	}
	if cause == nil && reply.Incomplete {
		cause = llm.ErrTruncated
	}
	r := newResponse(reply)
	r.Config, r.Raw, r.Warnings = x.options.requestSettings(), reply.Raw, x.warnings
	drafts, unkept := b.responseDrafts(x, reply, cause != nil)
	tip, err := b.repo.header(context.WithoutCancel(ctx), x.tip) // an interrupted response is kept too
	if err != nil {
		return nil, &UnsavedError{Response: r, Cause: err}
	}
	manifest := x.finishManifest(reply.Sent)
	drafts[0].Origin.Manifest = manifest.ID
	commits, put, err := x.options.maskAndBuild(tip, drafts...)
	if err != nil {
		return nil, &UnsavedError{Response: r, Cause: err}
	}
	x.meter.callOnBudgetWithCost(drafts[0].Origin, commits)
	put = append(put, manifest)
	put = append(put, x.toolObjects...)
	r.Manifest = manifest.ID
	r.setCommitIDs(commits)
	batch := b.newBatch(x.options.note(ctx, "generate"), x.tip, commits, put)
	if cause != nil {
		return nil, b.rescueIncomplete(ctx, r, batch, cause)
	}
	if err := b.applyOrRescue(ctx, r, batch); err != nil {
		return nil, err
	}
	b.rememberReasoning(unkept, commits)
	return r, nil
}

// applyOrRescue moves the branch to the response. When the branch has moved, the response
// is kept under a rescue ref.
func (b *Branch) applyOrRescue(ctx context.Context, r *Response, batch objects.Batch) error {
	err := history.Apply(ctx, b.repo.store, batch)
	var moved *objects.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &moved):
		rescued, rescueErr := b.writeRescue(ctx, batch)
		if rescueErr != nil {
			return &UnsavedError{Response: r, Cause: errors.Join(err, rescueErr)}
		}
		return &ConflictError{Operation: "generate", Branch: b.name, Expected: moved.Want, Actual: moved.Have, Response: r, Rescued: rescued}
	case ctx.Err() != nil:
		return b.rescueIncomplete(ctx, r, batch, ctx.Err())
	}
	return &UnsavedError{Response: r, Cause: err}
}

// newResponse returns the exported form of a response. The caller sets the fields that the
// response itself does not have, such as Commits, Config and Manifest.
func newResponse(reply *llm.Response) *Response {
	return &Response{
		ID: reply.ID, Text: reply.Text(), Reasoning: reply.Reasoning(), ToolCalls: reply.ToolCalls(), Blocks: reply.Blocks,
		Usage: reply.Usage.Bounded(), Finish: reply.Finish, Model: reply.Model,
	}
}

// setCommitIDs sets the ids of the response's commits, and of those with reasoning.
func (r *Response) setCommitIDs(commits []*commit.Commit) {
	r.Commits = commitIDs(commits)
	for _, c := range commits {
		if c.Kind == content.KindReasoning {
			r.ReasoningCommits = append(r.ReasoningCommits, c.ID)
		}
	}
}

// noContentNote returns the note that is committed for a response without content, so that
// its cost is not lost.
func noContentNote(reply *llm.Response) content.Block {
	note := "the response has no content"
	if reply.Finish != "" {
		note += "; finish reason: " + reply.Finish
	}
	return content.Note(note)
}

// requestSettings returns the explicitly set settings that shape a request, for the origin
// of its response.
func (c *callOptions) requestSettings() map[string]string {
	set := map[string]string{}
	for key, value := range c.settings.Changed() {
		if strings.HasPrefix(key, "reasoning.") || key == "model" || key == "temperature" || key == "max_output_tokens" || key == "tool_choice" {
			set[key] = value
		}
	}
	return set
}

// finishManifest records the hash of the body that the client sent in the manifest, if the
// body differs from the compiled one, and returns the manifest's object. sentBody is used
// when the client did not report the body before.
func (x *Exchange) finishManifest(sentBody []byte) (manifest objects.Object) {
	body := x.sentBody
	if body == nil {
		body = sentBody
	}
	if len(body) > 0 {
		if sent := objects.Hash(body); sent != x.Manifest.Compiled {
			x.Manifest.Sent = sent
		}
	}
	return x.Manifest.Object()
}

// responseDrafts returns the drafts of a response. unkept is the reasoning that is not
// committed, by the index of the draft that it comes before. A response without content is
// committed as a note, so that its cost is not lost.
func (b *Branch) responseDrafts(x *Exchange, reply *llm.Response, incomplete bool) (drafts []commit.Draft, unkept map[int][]content.Block) {
	origin := b.responseOrigin(x, reply, incomplete)
	keep := x.options.settings.Bool("reasoning.commit")
	options := callOptions{time: b.repo.clock(), key: x.options.key} // the author and the label of the call are not those of the response
	add := func(block content.Block) {
		d := options.newDraftWithoutRoleOrPriority(block, origin)
		d.Index = len(drafts)
		drafts = append(drafts, d)
	}
	unkept = map[int][]content.Block{}
	for _, block := range reply.Blocks {
		switch {
		case block.Kind() == content.KindReasoning && !keep:
			unkept[len(drafts)] = append(unkept[len(drafts)], block)
			origin.UncommittedReasoning++
		case !content.IsBlank(block):
			add(block)
		}
	}
	if len(drafts) == 0 {
		add(noContentNote(reply))
	}
	return drafts, unkept
}

// newResponseOrigin returns the origin of a response on the branch, with the fields that the
// response and the address of its request determine.
func (b *Branch) newResponseOrigin(reply *llm.Response, from llm.Address) *commit.Origin {
	return &commit.Origin{
		Source: commit.SourceModel, Session: b.name, Provider: from.Provider, Dialect: from.Dialect, Endpoint: from.Endpoint,
		Model: reply.Model, ResponseID: reply.ID, Finish: reply.Finish, Incomplete: reply.Incomplete, Usage: reply.Usage.Bounded(),
	}
}

// responseOrigin returns the origin of the response to an exchange.
func (b *Branch) responseOrigin(x *Exchange, reply *llm.Response, incomplete bool) *commit.Origin {
	from := reply.From
	if x.Target != nil {
		from = x.Target.Address()
	}
	o := b.newResponseOrigin(reply, from)
	o.Model, o.Incomplete, o.Settings = cmp.Or(reply.Model, x.Manifest.Model), incomplete, x.options.requestSettings()
	o.Started, o.FirstToken, o.Duration = x.started, x.firstToken, b.repo.clock().Sub(x.started)
	return o
}

// loadResponse returns the response that an earlier call committed under the idempotency
// key.
func (b *Branch) loadResponse(ctx context.Context, ids []objects.ID) (*Response, error) {
	commits, err := commit.ReadHeaders(ctx, b.repo.store, ids)
	if err == nil {
		err = commit.LoadAll(ctx, b.repo.store, commits...)
	}
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	reply := &llm.Response{}
	for _, c := range commits {
		reply.Blocks = append(reply.Blocks, c.Block)
	}
	r := newResponse(reply)
	r.setCommitIDs(commits)
	if o := commits[0].Origin; o != nil {
		r.Usage, r.Finish, r.Model, r.Config, r.Manifest = o.Usage, o.Finish, o.Model, o.Settings, o.Manifest
	}
	return r, nil
}
