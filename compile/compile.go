// Package compile turns a history into a prompt, and records for every commit why it is sent or
// left out.
//
// For most uses call [Chain]; to see the decisions without reading content, call [Decisions].
// The prompt is a pure function of the head and the [Options]: the same arguments give the same
// messages forever, so a prompt of the past can be shown exactly as it was. A [Manifest] records
// the head and the options of a request, so that its prompt can be compiled again and compared
// with the body that was sent. The package writes nothing.
//
// Compiling makes these passes, in this order. Each pass leaves out entries that the later passes
// can ignore, and the content of entries that are left out is never read:
//
//  1. collect (history.go, linearize.go): walk from the head to the root over the headers of
//     commits, make an [Entry] of each, number the turns and messages. A cached prompt ends the
//     walk early (cache.go).
//  2. decideLevels (decide.go): ask the [priority.Policy] for the level of each entry: skip, normal,
//     pinned; keep the open tool loop whole.
//  3. applySummaries (summary.go): leave out the entries that a summary stands for.
//  4. replaceNamedSystems (history.go): a named system block replaces the earlier one of its name.
//  5. dropOldestTurns (history.go): leave out whole turns, the oldest first. Tokens are estimates
//     times a factor taken from the usage that earlier responses reported (scale.go).
//  6. pairCalls (tools.go): load tool calls and results, and send both or none of a pair.
//  7. load the content of the entries that are sent, and leave out purged content (purged.go).
//  8. buildAndCachePrompt (messages.go): join blocks to messages and count.
package compile

import (
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Options is everything besides the head that a prompt depends on.
type Options struct {
	Policy priority.Policy
	Budget int // most tokens; 0 is no limit

	// DropOpenReasoning is set for a target that does not want the reasoning of an open tool
	// loop back.
	DropOpenReasoning bool

	// KeepToolReasoning is set for a target that demands, in every later request, the reasoning
	// of each turn that has tool calls.
	KeepToolReasoning bool
}

// Prompt holds the messages to send to a model, and for every commit the decision about it.
// Prompts of one history share memory, so a Prompt that Chain returned must not be changed.
type Prompt struct {
	Head         objects.ID
	Messages     []content.Message
	BlockEntries []int32 // the index in Entries of each block of the messages, message by message
	Entries      []Entry // all commits of the history, oldest first
	Tokens       Tokens
	Pending      []Pending

	Scale Scale // of Tokens
}

// MessageCommits yields the index of each message and the commits of its blocks. The list is
// valid until the next iteration.
func (p *Prompt) MessageCommits() iter.Seq2[int, []objects.ID] {
	return func(yield func(int, []objects.ID) bool) {
		rest := p.BlockEntries
		var list []objects.ID
		for i, m := range p.Messages {
			list = list[:0]
			for _, at := range rest[:len(m.Blocks)] {
				list = append(list, p.Entries[at].ID)
			}
			rest = rest[len(m.Blocks):]
			if !yield(i, list) {
				return
			}
		}
	}
}

// Tokens counts a prompt in tokens: the [Estimate] of every block times the factor of a [Scale].
// Raw is the sum of the others.
type Tokens struct {
	Raw             int `json:"raw"`              // everything on the chain
	Effective       int `json:"effective"`        // what is sent
	Hidden          int `json:"hidden"`           // what is left out, without reasoning
	HiddenReasoning int `json:"hidden_reasoning"` // reasoning that is left out

	byteSums // while estimates are added up
}

// Pending is a tool call at the end of the history that has no result yet.
type Pending struct {
	Commit objects.ID
	Call   content.ToolCall
}

// EstimateVersion names the formula of Estimate and of Scale.
const EstimateVersion = 3

// Estimate returns the estimated tokens of a block that takes so many bytes of a prompt (see
// [content.Kind.PromptBytes]): one token for each four bytes. A [Scale] converts it into tokens
// of a model.
func Estimate(size int64) int { return int((size + 3) / 4) }

// Chain compiles the history of head. When the blocks that must be sent exceed the budget, the
// error is a *[priority.OverBudgetError].
//
// A store that is an [objects.Cacher] keeps the prompts compiled last: compiling again after an
// append takes time in proportion to the number of new commits.
func Chain(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*Prompt, error) {
	p, err := compileHead(ctx, r, head, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", head.Short(), err)
	}
	return p, nil
}

// compileHead is Chain, with errors that do not name the head.
func compileHead(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*Prompt, error) {
	h, err := collectOnlyAfterCachedPrefix(ctx, r, head, o)
	if err == nil {
		err = h.decideBeforePairing(ctx, r, o)
	}
	if err == nil {
		err = h.load(ctx, r, h.callsAndResultsOfSentTurns())
	}
	if err == nil {
		h.leaveOutPurgedExceptResults()
		h.pairCalls()
		h.redecideReasoningWithoutCalls(o)
		err = h.load(ctx, r, h.sentEntries())
	}
	if err != nil {
		return nil, err
	}
	h.leaveOutPurgedExceptResults()
	p := h.buildAndCachePrompt(head)
	p.Scale = h.scale
	if o.Budget <= 0 {
		if p.Scale, err = h.findScale(ctx, r, p.Entries, p.Tokens.byteSums); err != nil {
			return nil, err
		}
	}
	p.Tokens = p.Tokens.scaledBy(p.Scale)
	return p, nil
}

// collectOnlyAfterCachedPrefix collects the history of head, after a cached prefix if a valid one exists.
func collectOnlyAfterCachedPrefix(ctx context.Context, r objects.Reader, head objects.ID, o Options) (*history, error) {
	cache := promptCacheOf(r, o)
	h, err := collect(ctx, r, head, cache.walkStops())
	now := promptCacheOf(r, o) // a new one when the store has just noticed that content was purged
	if err == nil && (now != cache || h.from.prefix != nil && !h.from.prefix.stillValid(h, o)) {
		h, err = collect(ctx, r, head, nil)
	}
	if err != nil {
		return nil, err
	}
	h.cache = now
	return h, nil
}

// decideBeforePairing decides which entries are sent, before tool calls and results are read and
// paired: by level, summary, replaced instruction and budget.
func (h *history) decideBeforePairing(ctx context.Context, r objects.Reader, o Options) (err error) {
	h.decideLevels(o)
	h.applySummaries()
	if err := h.load(ctx, r, h.sentSystems()); err != nil {
		return err
	}
	h.replaceNamedSystems()
	if o.Budget > 0 {
		if h.scale, err = h.findScale(ctx, r, h.entries, h.sumBytes()); err != nil {
			return err
		}
	}
	return h.dropOldestTurns(o.Budget)
}

// Decisions returns what the policy decides about every commit of the history of head, oldest
// first, before the budget and the pairing of tool calls. It reads headers and the reasons of
// annotations, and no other content.
func Decisions(ctx context.Context, r objects.Reader, head objects.ID, o Options) ([]Entry, error) {
	h, err := collect(ctx, r, head, nil)
	if err != nil {
		return nil, fmt.Errorf("walk %s: %w", head.Short(), err)
	}
	h.decideLevels(o)
	h.applySummaries()
	return h.entries, nil
}
