package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Problem is a reason for which a provider would refuse a request, and the
// commit that it comes from, zero when none can be named.
type Problem struct {
	llm.Problem
	Commit objects.ID
}

// RuleError says that a provider would refuse the request, and by which rules.
type RuleError struct {
	Problems []Problem // at least one; none is a warning
}

// Error names the first rule.
func (e *RuleError) Error() string {
	p := e.Problems[0]
	text := fmt.Sprintf("generate: the provider would refuse it: %s (rule %s", p.Message, p.Rule)
	if !p.Commit.IsZero() {
		text += ", commit " + p.Commit.Short()
	}
	if n := len(e.Problems) - 1; n > 0 {
		text += fmt.Sprintf("; %d more", n)
	}
	return text + ")"
}

// Check says why a target would refuse the prompt of a revision: nothing known
// when the list is empty. Generate does the same before it asks.
func (r *Repo) Check(ctx context.Context, rev string, t llm.Target, o RequestOptions) ([]Problem, error) {
	c, err := r.requesting(o, t)
	if err != nil {
		return nil, err
	}
	p, err := r.compile(ctx, rev, c)
	if err != nil {
		return nil, err
	}
	req := &llm.Request{Messages: p.Messages, Tools: c.tools, Settings: c.modelSettings()}
	if req.Body, err = t.Encode(req); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	problems, err := r.problems(ctx, p, t, req, nil)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	left, err := r.leftOut(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return append(problems, left...), nil
}

// leftOut lists the tool calls that a prompt leaves out because no result came, and the
// results that answer no call which waits for one.
func (r *Repo) leftOut(ctx context.Context, p *compile.Prompt) ([]Problem, error) {
	var left []*compile.Entry
	for i := range p.Entries {
		e := p.Entries[i]
		if e.Op == commit.Append && (e.Kind == content.KindToolCall && compile.IsUnansweredCall(e.Why()) || e.Kind == content.KindToolResult && compile.IsUnmatchedResult(e.Why())) {
			left = append(left, &e)
		}
	}
	if err := compile.Load(ctx, r.store, left...); err != nil {
		return nil, err
	}
	var list []Problem
	for _, e := range left {
		switch v := e.Block.(type) {
		case content.ToolCall:
			list = append(list, unanswered(e.ID, v))
		case content.ToolResult:
			list = append(list, Problem{Commit: e.ID, Problem: llm.Problem{
				Rule: ruleUnmatched, CallID: v.CallID, Warning: true,
				Message: "the result of the tool call " + v.CallID + " is left out: " + string(e.Why()),
			}})
		}
	}
	return list, nil
}

// unanswered warns of a tool call that a user message leaves, or left, without a result.
func unanswered(at objects.ID, call content.ToolCall) Problem {
	return Problem{Commit: at, Problem: llm.Problem{
		Rule: RuleUnanswered, CallID: call.CallID, Warning: true,
		Message: "the tool call " + call.CallID + " has no result: from the next user message on, prompts leave it and the reasoning before it out",
	}}
}

// problems lists what is wrong with a request: first what its history tells,
// then what its target knows. kept is thoughts that are not committed and go
// back all the same, by the commit they stand before.
func (r *Repo) problems(ctx context.Context, p *compile.Prompt, t llm.Target, req *llm.Request, kept map[objects.ID][]content.Block) ([]Problem, error) {
	list, err := r.historyProblems(ctx, p, t, req, kept)
	if err != nil {
		return nil, err
	}
	checker, ok := t.(llm.Checker)
	if !ok {
		return list, nil
	}
	pending := map[string]bool{}
	for _, problem := range list {
		if problem.Rule == rulePending {
			pending[problem.CallID] = true
		}
	}
	for _, found := range checker.Check(req) {
		if found.Rule == "tool-result-missing" && pending[found.CallID] {
			continue // said already
		}
		list = append(list, Problem{Problem: found, Commit: placeOf(p, found, len(kept) == 0)})
	}
	return list, nil
}

// placeOf is the commit that a problem comes from.
func placeOf(p *compile.Prompt, found llm.Problem, inStep bool) objects.ID {
	if at := found.Block; inStep && at.Message > 0 && at.Message <= len(p.Messages) && at.Block > 0 && at.Block <= len(p.Messages[at.Message-1].Blocks) {
		for i, commits := range p.MessageCommits() {
			if i == at.Message-1 {
				return commits[at.Block-1]
			}
		}
	}
	if found.CallID == "" {
		return objects.ID{}
	}
	last, of := -1, objects.ID{}
	for i, commits := range p.MessageCommits() {
		for j, b := range p.Messages[i].Blocks {
			call, isCall := b.(content.ToolCall)
			result, isResult := b.(content.ToolResult)
			if i > last && (isCall && call.CallID == found.CallID || isResult && result.CallID == found.CallID) {
				last, of = i, commits[j]
			}
		}
	}
	return of
}

// RuleUnanswered is the rule of a [Problem] with a tool call to which no result came
// before the user spoke.
const RuleUnanswered = "unanswered-call"

// The rules that only a history can tell of.
const (
	rulePending = "pending-call"
	ruleNotKept = "reasoning-not-kept"
	ruleLeftOut = "reasoning-left-out"
	ruleEdited  = "reasoning-edited"
	ruleOrder   = "reasoning-order"
	ruleReplyID = "reply-id"

	ruleUnmatched = "unmatched-result"
)

func (r *Repo) historyProblems(ctx context.Context, p *compile.Prompt, t llm.Target, req *llm.Request, kept map[objects.ID][]content.Block) ([]Problem, error) {
	var list []Problem
	for _, pending := range p.Pending {
		list = append(list, Problem{Commit: pending.Commit, Problem: llm.Problem{
			Rule: rulePending, CallID: pending.Call.CallID, Message: "the tool call " + pending.Call.CallID + " waits for its result",
		}})
	}
	// A client of unknown form gets the thoughts too, and tells nobody whether it
	// minds; nor does a server that is only compatible.
	strict := t != nil && t.Address().Dialect != "chat"
	if t != nil && !t.NeedsReasoningInToolLoop() {
		return list, nil
	}
	loop, err := r.openLoop(ctx, p)
	if err != nil {
		return nil, err
	}
	keeper, ok := t.(llm.ReasoningKeeper)
	keeps := ok && keeper.NeedsReasoningAfterToolLoop(req.Settings)
	if keeps {
		list = append(list, closedTurnProblems(p)...)
	}
	for i := range loop {
		list = append(list, loop[i].problems(strict, keeps, kept)...)
	}
	return list, nil
}

// closedTurnProblems lists the reasoning before tool calls of closed turns that is left
// out, for a target that wants it in every request. Where a person left it out, that
// is obeyed and the request is refused.
func closedTurnProblems(p *compile.Prompt) (list []Problem) {
	if len(p.Entries) == 0 {
		return nil
	}
	last := p.Entries[len(p.Entries)-1].Turn
	calls := map[int32]bool{}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Sent && e.Kind == content.KindToolCall && e.Turn < last {
			calls[e.Message()] = true
		}
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if annotated := e.Why().Annotated(); calls[e.Message()] && e.Op == commit.Append && e.Kind == content.KindReasoning && !e.Sent && (annotated || e.Tombstone() != nil) {
			list = append(list, Problem{Commit: e.ID, Problem: llm.Problem{
				Rule: ruleLeftOut, Warning: !annotated,
				Message: "the reasoning before a tool call is left out (" + string(e.Why()) + "), and its provider wants it back in every request",
			}})
		}
	}
	return list
}

// loopReply is one reply of a model in the open tool loop.
type loopReply struct {
	origin   *commit.Origin
	calls    []*compile.Entry // that are sent
	thoughts []*compile.Entry
	sent     []*compile.Entry // in the order of the prompt
}

// openLoop is the replies of the last turn that called tools.
func (r *Repo) openLoop(ctx context.Context, p *compile.Prompt) ([]loopReply, error) {
	if len(p.Entries) == 0 {
		return nil, nil
	}
	last := p.Entries[len(p.Entries)-1].Turn
	places := map[objects.ID]int{}
	var replies []loopReply
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Op == commit.Merge { // which is made where no loop is open
			places, replies = map[objects.ID]int{}, nil
		}
		if e.Turn != last || e.Op != commit.Append || e.Role != content.RoleAssistant || e.Origin().IsZero() {
			continue
		}
		at, known := places[e.Origin()]
		if !known {
			origin, err := commit.ReadOrigin(ctx, r.store, e.Origin())
			if err != nil {
				return nil, err
			}
			if origin.Source != commit.SourceModel && origin.Source != commit.SourceImport {
				continue
			}
			at = len(replies)
			places[e.Origin()], replies = at, append(replies, loopReply{origin: origin})
		}
		reply := &replies[at]
		if e.Sent {
			reply.sent = append(reply.sent, e)
		}
		switch {
		case e.Kind == content.KindReasoning:
			own := *e // it is loaded, and prompts share theirs
			reply.thoughts = append(reply.thoughts, &own)
		case e.Kind == content.KindToolCall && e.Sent:
			reply.calls = append(reply.calls, e)
		}
	}
	var all []*compile.Entry
	for _, reply := range replies {
		all = append(all, reply.thoughts...)
	}
	return replies, compile.Load(ctx, r.store, all...)
}

// problems is what is wrong with the thoughts of a reply whose tool calls go
// back. keeps tells that the target refuses a request in which one is missing,
// sealed or not.
func (l *loopReply) problems(strict, keeps bool, kept map[objects.ID][]content.Block) (list []Problem) {
	if len(l.calls) == 0 {
		return nil
	}
	call := l.calls[0]
	add := func(rule string, at *compile.Entry, text string) {
		refused := strict || rule == ruleNotKept || rule == ruleLeftOut && keeps && at.Why().Annotated()
		list = append(list, Problem{Commit: at.ID, Problem: llm.Problem{Rule: rule, Message: text, Warning: !refused}})
	}
	remembered := false
	for _, e := range l.sent {
		remembered = remembered || len(kept[e.ID]) > 0
	}
	if l.origin.UncommittedReasoning > 0 && !remembered {
		add(ruleNotKept, call, "the thoughts before this tool call were not committed, and its provider wants them back")
	}
	for _, e := range l.thoughts {
		sealed := e.Block != nil && !e.Block.Form().Seal.IsZero()
		switch {
		case !e.Sent && (sealed || keeps || !strict):
			add(ruleLeftOut, e, "a thought of the open tool loop is left out ("+string(e.Why())+"), and its provider wants it back")
		case e.Sent && sealed && !e.EditedBy().IsZero():
			add(ruleEdited, e, "a sealed thought of the open tool loop was edited, and its provider wants it back unchanged")
		}
	}
	for i := 1; i < len(l.sent); i++ {
		if l.sent[i].Index < l.sent[i-1].Index {
			add(ruleOrder, l.sent[i], "the blocks of a reply are not in the order in which they came")
		}
	}
	return list
}
