package tract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// rescueTime is how long keeping a reply may take after its context is done.
const rescueTime = 10 * time.Second

// land commits a reply, or keeps it under a rescue ref. cause is why it broke
// off, nil when it is whole.
func (b *Branch) land(ctx context.Context, x *Exchange, reply *llm.Response, cause error) (*Response, error) {
	if reply == nil || cause != nil && len(reply.Blocks) == 0 {
		if cause == nil {
			cause = errors.New("the client returned no response")
		}
		return nil, fmt.Errorf("generate: %w", cause)
	}
	if cause == nil && reply.Incomplete {
		cause = llm.ErrTruncated
	}
	r := x.response(reply)
	drafts, unkept := b.replyDrafts(x, reply, cause != nil)
	tip, err := b.repo.header(context.WithoutCancel(ctx), x.tip) // an answer that was stopped is kept too
	if err != nil {
		return nil, &UnsavedError{Response: r, Cause: err}
	}
	manifest := x.finish(reply)
	drafts[0].Origin.Manifest = manifest.ID
	commits, put, err := x.call.commits(tip, drafts...)
	if err != nil {
		return nil, &UnsavedError{Response: r, Cause: err}
	}
	x.meter.done(drafts[0].Origin, commits)
	put = append(put, manifest)
	if x.tools != nil {
		put = append(put, *x.tools)
	}
	r.Manifest = manifest.ID
	batch := b.batch(x.call.note(ctx, "generate"), x.tip, commits, put, &r.Commits)
	for _, c := range commits {
		if c.Kind == content.KindReasoning {
			r.ReasoningCommits = append(r.ReasoningCommits, c.ID)
		}
	}
	if cause != nil {
		return nil, b.keep(ctx, r, batch, cause)
	}
	if err := b.applyReply(ctx, r, batch); err != nil {
		return nil, err
	}
	b.keepThoughts(unkept, commits)
	return r, nil
}

// response is the reply in the words of the facade.
func (x *Exchange) response(reply *llm.Response) *Response {
	r := &Response{
		ID: reply.ID, Text: reply.Text(), Reasoning: reply.Reasoning(), ToolCalls: reply.ToolCalls(), Blocks: reply.Blocks,
		Usage: reply.Usage.Bounded(), Finish: reply.Finish, Model: reply.Model, Config: x.call.asked(), Raw: reply.Raw, Warnings: x.warned,
	}
	return r
}

// asked is the settings that a request was made with, where someone set them.
func (c *call) asked() map[string]string {
	asked := map[string]string{}
	for key, value := range c.settings.Changed() {
		if strings.HasPrefix(key, "reasoning.") || key == "model" || key == "temperature" || key == "max_output_tokens" || key == "tool_choice" {
			asked[key] = value
		}
	}
	return asked
}

// finish completes the manifest with what the client sent, and makes its object.
func (x *Exchange) finish(reply *llm.Response) objects.Object {
	body := x.sent
	if body == nil {
		body = reply.Sent
	}
	if len(body) > 0 {
		if sent := objects.Hash(body); sent != x.Manifest.Compiled {
			x.Manifest.Sent = sent
		}
	}
	return x.Manifest.Object()
}

// replyDrafts makes the drafts of a reply. Thoughts that are not to be committed
// come back apart, by the place among the drafts that they stand before. A reply
// without a block is a note, so that what it cost is not lost.
func (b *Branch) replyDrafts(x *Exchange, reply *llm.Response, broken bool) (drafts []commit.Draft, unkept map[int][]content.Block) {
	origin := b.replyOrigin(x, reply, broken)
	keep := x.call.settings.Bool("reasoning.commit")
	said := call{time: b.repo.clock(), key: x.call.key} // the author and the label of the call are not those of the response
	add := func(block content.Block) {
		d := said.draft(block, origin)
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
		note := "the reply has no content"
		if reply.Finish != "" {
			note += "; finish reason: " + reply.Finish
		}
		add(content.Note(note))
	}
	return drafts, unkept
}

func (b *Branch) replyOrigin(x *Exchange, reply *llm.Response, broken bool) *commit.Origin {
	o := &commit.Origin{
		Source: commit.SourceModel, Session: b.name, Provider: reply.From.Provider, Dialect: reply.From.Dialect, Endpoint: reply.From.Endpoint,
		Model: reply.Model, ResponseID: reply.ID, Finish: reply.Finish, Incomplete: broken, Usage: reply.Usage.Bounded(),
		Settings: x.call.asked(), Started: x.started, FirstToken: x.first, Duration: b.repo.clock().Sub(x.started),
	}
	if x.Target != nil {
		at := x.Target.Address()
		o.Provider, o.Dialect, o.Endpoint = at.Provider, at.Dialect, at.Endpoint
	}
	if o.Model == "" {
		o.Model = x.Manifest.Model
	}
	return o
}

// apply applies a batch that moves the branch, and again when the outcome is unknown: that
// the first attempt moved the branch is no conflict.
func (b *Branch) apply(ctx context.Context, batch objects.Batch) error {
	err := b.repo.store.Apply(ctx, batch)
	if !objects.IsUnknown(err) {
		return err
	}
	err = b.repo.store.Apply(ctx, batch)
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) && b.landed(ctx, moved.Have, batch.Refs[0]) {
		return nil
	}
	return err
}

// applyReply moves the branch to the reply. A branch that has moved leaves the
// reply under a rescue ref.
func (b *Branch) applyReply(ctx context.Context, r *Response, batch objects.Batch) error {
	err := b.apply(ctx, batch)
	var moved *objects.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &moved):
		rescued, rescueErr := b.rescue(ctx, batch)
		if rescueErr != nil {
			return &UnsavedError{Response: r, Cause: errors.Join(err, rescueErr)}
		}
		return &ConflictError{Operation: "generate", Branch: b.name, Expected: moved.Want, Actual: moved.Have, Response: r, Rescued: rescued}
	case ctx.Err() != nil:
		return b.keep(ctx, r, batch, ctx.Err())
	}
	return &UnsavedError{Response: r, Cause: err}
}

// landed tells whether a move is part of the history of tip.
func (b *Branch) landed(ctx context.Context, tip objects.ID, u objects.RefUpdate) bool {
	for c, err := range commit.Walk(ctx, b.repo.store, tip, 0, u.Old) {
		if err != nil {
			return false
		}
		if c.ID == u.New {
			return true
		}
	}
	return false
}

// keep keeps a reply that broke off.
func (b *Branch) keep(ctx context.Context, r *Response, batch objects.Batch, cause error) error {
	rescued, err := b.rescue(ctx, batch)
	if err != nil {
		return &UnsavedError{Response: r, Cause: errors.Join(cause, err)}
	}
	return &IncompleteError{Response: r, Rescued: rescued, Cause: cause}
}

// rescue puts what a batch has under a ref of its own, even when ctx is done.
func (b *Branch) rescue(ctx context.Context, batch objects.Batch) (ref string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueTime)
	defer cancel()
	base := refs.Rescued + b.name + "/" + b.repo.clock().UTC().Format(history.RescueTime)
	to := batch.Refs[0].New
	for n := 1; n < 100; n++ {
		ref = base
		if n > 1 {
			ref = fmt.Sprintf("%s-%d", base, n)
		}
		batch.Refs = []objects.RefUpdate{{Name: ref, New: to}}
		err = b.repo.store.Apply(ctx, batch)
		if taken := (*objects.ConflictError)(nil); !errors.As(err, &taken) {
			break
		}
	}
	return ref, err
}

// recall gives the reply that was committed under an idempotency key.
func (b *Branch) recall(ctx context.Context, ids []objects.ID) (*Response, error) {
	commits := make([]*commit.Commit, len(ids))
	for i, id := range ids {
		c, err := commit.Read(ctx, b.repo.store, id)
		if err != nil {
			return nil, fmt.Errorf("generate: %w", err)
		}
		commits[i] = c
	}
	if err := commit.LoadAll(ctx, b.repo.store, commits...); err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	reply := &llm.Response{}
	r := &Response{Commits: ids}
	for _, c := range commits {
		reply.Blocks = append(reply.Blocks, c.Block)
		if c.Kind == content.KindReasoning {
			r.ReasoningCommits = append(r.ReasoningCommits, c.ID)
		}
		if c.Origin != nil {
			r.Usage, r.Finish, r.Model, r.Config, r.Manifest = c.Origin.Usage, c.Origin.Finish, c.Origin.Model, c.Origin.Settings, c.Origin.Manifest
		}
	}
	r.Text, r.Reasoning, r.ToolCalls, r.Blocks = reply.Text(), reply.Reasoning(), reply.ToolCalls(), reply.Blocks
	return r, nil
}
