// Package compile walks a history and builds the prompt, with the reason for
// every commit.
//
// For most uses call [Chain]. The prompt is a pure function of the head and the
// [Options]: the same ones give the same messages for ever, so that a prompt of
// the past can be looked at exactly as it was. What is left out is not read.
//
// A [Manifest] is what a request was made of, kept so that this can be proved
// later.
package compile

import (
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Options is everything besides the head that decides what a prompt is.
type Options struct {
	Policy            priority.Policy
	Budget            int  // most tokens; 0 is no limit
	DropOpenReasoning bool // the target does not want the thoughts of an open tool loop back

	// KeepToolReasoning is set for a target that demands the reasoning of every turn with
	// tool calls in all later requests.
	KeepToolReasoning bool
}

// Prompt is what a model is sent, and why. Prompts of one history share memory:
// nobody changes what Chain gave.
type Prompt struct {
	Head         objects.ID
	Messages     []content.Message
	BlockEntries []int32 // of each block of the messages, one after the other: the place of its commit among Entries
	Entries      []Entry // every commit of the history, oldest first
	Tokens       Tokens
	Pending      []Pending

	Scale Scale // of Tokens
}

// MessageCommits yields the number of each message, and the commits of its blocks. The list is
// good until the next one.
func (p *Prompt) MessageCommits() iter.Seq2[int, []objects.ID] {
	return func(yield func(int, []objects.ID) bool) {
		said := p.BlockEntries
		var list []objects.ID
		for i, m := range p.Messages {
			list = list[:0]
			for _, at := range said[:len(m.Blocks)] {
				list = append(list, p.Entries[at].ID)
			}
			if said = said[len(m.Blocks):]; !yield(i, list) {
				return
			}
		}
	}
}

// Tokens counts a prompt: Estimate of every block, times the factor of a Scale. Raw is
// the sum of the others.
type Tokens struct {
	Raw             int `json:"raw"`              // everything on the chain
	Effective       int `json:"effective"`        // what is sent
	Hidden          int `json:"hidden"`           // what is left out, but for reasoning
	HiddenReasoning int `json:"hidden_reasoning"` // reasoning that is left out

	sums // while estimates are added up
}

// Pending is a tool call at the end of the history that has no result yet.
type Pending struct {
	Commit objects.ID
	Call   content.ToolCall
}

// EstimateVersion names the formula of Estimate and of Scale.
const EstimateVersion = 3

// Estimate is how many tokens a block takes that weighs so many bytes
// (content.Kind.PromptBytes): a token for each four. A [Scale] makes tokens of a model from it.
func Estimate(weight int64) int { return int((weight + 3) / 4) }

// Chain compiles the history of head. A budget that what must be sent does not
// fit is a *[priority.OverBudgetError].
//
// A store that is an [objects.Cacher] remembers the prompts compiled last. What
// is compiled after them on the same history takes as long as what is new.
func Chain(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*Prompt, error) {
	p, err := chain(ctx, r, head, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", head.Short(), err)
	}
	return p, nil
}

// chain is Chain, with errors that do not name the head.
func chain(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*Prompt, error) {
	h, err := whole(ctx, r, head, o)
	for _, stage := range []func() error{
		func() error { return h.load(ctx, r, h.toolTurns()) },
		func() error { h.leaveErased(); h.pair(); h.releaseReasoning(o); return h.load(ctx, r, h.lacking()) },
		func() error { h.leaveErased(); return nil },
	} {
		if err == nil {
			err = stage()
		}
	}
	if err != nil {
		return nil, err
	}
	p := h.prompt(head, h.memory)
	p.Scale = h.scale
	if o.Budget <= 0 {
		if p.Scale, err = h.scaled(ctx, r, p.Entries, p.Tokens.sums); err != nil {
			return nil, err
		}
	}
	p.Tokens = p.Tokens.scaled(p.Scale)
	return p, nil
}

// whole is the history of head, or what is new in it, settled.
func whole(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*history, error) {
	known := recall(r, o)
	h, err := gather(ctx, r, head, known)
	now := recall(r, o) // another one, when the store has just noticed that words were erased
	if err == nil && (now != known || h.base != nil && !h.base.holds(h, o)) {
		h, err = gather(ctx, r, head, nil)
	}
	if err != nil {
		return nil, err
	}
	h.memory = now
	return h, h.settle(ctx, r, o)
}

// settle decides what goes in, as far as that can be known without the words of
// tool calls.
func (h *history) settle(ctx context.Context, r objects.Reader, o Options) (err error) {
	h.decide(o)
	h.summaries()
	if err := h.load(ctx, r, h.sentSystems()); err != nil {
		return err
	}
	h.replaceSystems()
	if o.Budget > 0 {
		if h.scale, err = h.scaled(ctx, r, h.entries, h.sums()); err != nil {
			return err
		}
	}
	return h.fit(o.Budget)
}

// Decisions says what the policy makes of every commit of the history of head,
// oldest first, before a budget and the pairing of tool calls: it reads headers
// and the words of annotations, no content.
func Decisions(ctx context.Context, r objects.Reader, head objects.ID, o Options) ([]Entry, error) {
	h, err := gather(ctx, r, head, nil)
	if err != nil {
		return nil, fmt.Errorf("walk %s: %w", head.Short(), err)
	}
	h.decide(o)
	h.summaries()
	return h.entries, nil
}
