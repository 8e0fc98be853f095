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

// Problem is a reason why a provider would refuse a request. Commit is the commit that
// causes it; zero when there is no single one.
type Problem struct {
	llm.Problem
	Commit objects.ID
}

// RuleError is the error for a request that a provider would refuse. Nothing was sent.
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

// Check returns the known reasons why a target would refuse the prompt of a revision.
// Generate makes the same checks before it sends a request.
func (r *Repo) Check(ctx context.Context, rev string, t llm.Target, o RequestOptions) ([]Problem, error) {
	c, err := r.resolveRequest(o, t)
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
	problems, err := r.requestProblems(ctx, p, t, req, nil)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	left, err := r.leftOutToolWarnings(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return append(problems, left...), nil
}

// leftOutToolWarnings returns warnings for the tool calls that a prompt leaves out because
// they have no result, and for the results that answer no waiting call.
func (r *Repo) leftOutToolWarnings(ctx context.Context, p *compile.Prompt) ([]Problem, error) {
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
			list = append(list, unansweredCallWarning(e.ID, v))
		case content.ToolResult:
			list = append(list, Problem{Commit: e.ID, Problem: llm.Problem{
				Rule: ruleUnmatched, CallID: v.CallID, Warning: true,
				Message: "the result of the tool call " + v.CallID + " is left out: " + string(e.Why()),
			}})
		}
	}
	return list, nil
}

// unansweredCallWarning returns the warning for a tool call that a user message leaves without
// a result.
func unansweredCallWarning(at objects.ID, call content.ToolCall) Problem {
	return Problem{Commit: at, Problem: llm.Problem{
		Rule: RuleUnanswered, CallID: call.CallID, Warning: true,
		Message: "the tool call " + call.CallID + " has no result: from the next user message on, prompts leave it and the reasoning before it out",
	}}
}

// requestProblems returns the problems of a request: first those that its history shows, then those
// that its target finds. uncommitted is the reasoning that is sent without being committed, by the
// commit that it comes before.
func (r *Repo) requestProblems(ctx context.Context, p *compile.Prompt, t llm.Target, req *llm.Request, uncommitted map[objects.ID][]content.Block) ([]Problem, error) {
	list, err := r.pendingAndReasoningProblems(ctx, p, t, req, uncommitted)
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
			continue // it is in the list already
		}
		list = append(list, Problem{Problem: found, Commit: problemCommit(p, found, len(uncommitted) == 0)})
	}
	return list, nil
}

// problemCommit returns the commit that causes a problem which a target found; zero when it
// is not known. samePositions tells that the request's messages and blocks have the same
// positions as those of the prompt.
func problemCommit(p *compile.Prompt, found llm.Problem, samePositions bool) objects.ID {
	if at := found.Block; samePositions && at.Message > 0 && at.Message <= len(p.Messages) && at.Block > 0 && at.Block <= len(p.Messages[at.Message-1].Blocks) {
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
			if i > last && content.CallIDOf(b) == found.CallID {
				last, of = i, commits[j]
			}
		}
	}
	return of
}

// RuleUnanswered is the rule of a [Problem] with a tool call that had no result when the
// next user message came.
const RuleUnanswered = "unanswered-call"

// The rules that are checked against the history, not against the request.
const (
	rulePending = "pending-call"
	ruleNotKept = "reasoning-not-kept"
	ruleLeftOut = "reasoning-left-out"
	ruleEdited  = "reasoning-edited"
	ruleOrder   = "reasoning-order"
	ruleReplyID = "reply-id"

	ruleUnmatched = "unmatched-result"
)

// pendingAndReasoningProblems returns the problems that the history of a prompt shows.
func (r *Repo) pendingAndReasoningProblems(ctx context.Context, p *compile.Prompt, t llm.Target, req *llm.Request, uncommitted map[objects.ID][]content.Block) ([]Problem, error) {
	var list []Problem
	for _, pending := range p.Pending {
		list = append(list, Problem{Commit: pending.Commit, Problem: llm.Problem{
			Rule: rulePending, CallID: pending.Call.CallID, Message: "the tool call " + pending.Call.CallID + " waits for its result",
		}})
	}
	// Without a target, or with the "chat" dialect of compatible servers, it is
	// unknown whether missing reasoning is refused.
	targetRefuses := t != nil && t.Address().Dialect != "chat"
	if t != nil && !t.NeedsReasoningInToolLoop() {
		return list, nil
	}
	loop, err := r.lastTurnResponses(ctx, p)
	if err != nil {
		return nil, err
	}
	keeper, ok := t.(llm.ReasoningKeeper)
	requiresReasoning := ok && keeper.NeedsReasoningAfterToolLoop(req.Settings)
	if requiresReasoning {
		list = append(list, closedTurnReasoningProblems(p)...)
	}
	for i := range loop {
		list = append(list, loop[i].reasoningProblems(targetRefuses, requiresReasoning, uncommitted)...)
	}
	return list, nil
}

// closedTurnReasoningProblems returns problems for reasoning before the tool calls of closed turns
// that an annotation or a purge leaves out, for a target that needs it in every request. When it
// is an annotation, the problem is no warning, so the request is refused.
func closedTurnReasoningProblems(p *compile.Prompt) (list []Problem) {
	if len(p.Entries) == 0 {
		return nil
	}
	last := p.Entries[len(p.Entries)-1].Turn
	calls := map[int32]bool{}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.InPrompt && e.Kind == content.KindToolCall && e.Turn < last {
			calls[e.Message()] = true
		}
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if annotated := e.Why().Annotated(); calls[e.Message()] && e.Op == commit.Append && e.Kind == content.KindReasoning && !e.InPrompt && (annotated || e.Tombstone() != nil) {
			list = append(list, Problem{Commit: e.ID, Problem: llm.Problem{
				Rule: ruleLeftOut, Warning: !annotated,
				Message: "the reasoning before a tool call is left out (" + string(e.Why()) + "), and its provider wants it back in every request",
			}})
		}
	}
	return list
}

// turnResponse is one response of a model in the last turn.
type turnResponse struct {
	origin    *commit.Origin
	calls     []*compile.Entry // only those that are sent
	reasoning []*compile.Entry
	sent      []*compile.Entry // in the order of the prompt
}

// lastTurnResponses returns the responses of the last turn.
func (r *Repo) lastTurnResponses(ctx context.Context, p *compile.Prompt) ([]turnResponse, error) {
	if len(p.Entries) == 0 {
		return nil, nil
	}
	last := p.Entries[len(p.Entries)-1].Turn
	places := map[objects.ID]int{}
	var replies []turnResponse
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Op == commit.Merge { // a merge closes the tool loop
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
			places[e.Origin()], replies = at, append(replies, turnResponse{origin: origin})
		}
		reply := &replies[at]
		if e.InPrompt {
			reply.sent = append(reply.sent, e)
		}
		switch {
		case e.Kind == content.KindReasoning:
			own := *e // a copy, because Load changes it and prompts share entries
			reply.reasoning = append(reply.reasoning, &own)
		case e.Kind == content.KindToolCall && e.InPrompt:
			reply.calls = append(reply.calls, e)
		}
	}
	var all []*compile.Entry
	for _, reply := range replies {
		all = append(all, reply.reasoning...)
	}
	return replies, compile.Load(ctx, r.store, all...)
}

// reasoningProblems returns the problems with the reasoning of a response whose tool calls are
// sent. targetRefuses tells that the target is known to refuse such requests; requiresReasoning
// tells that it refuses a request in which reasoning is missing, sealed or not.
func (l *turnResponse) reasoningProblems(targetRefuses, requiresReasoning bool, uncommitted map[objects.ID][]content.Block) (list []Problem) {
	if len(l.calls) == 0 {
		return nil
	}
	call := l.calls[0]
	add := func(rule string, at *compile.Entry, text string) {
		refused := targetRefuses || rule == ruleNotKept || rule == ruleLeftOut && requiresReasoning && at.Why().Annotated()
		list = append(list, Problem{Commit: at.ID, Problem: llm.Problem{Rule: rule, Message: text, Warning: !refused}})
	}
	remembered := false
	for _, e := range l.sent {
		remembered = remembered || len(uncommitted[e.ID]) > 0
	}
	if l.origin.UncommittedReasoning > 0 && !remembered {
		add(ruleNotKept, call, "the thoughts before this tool call were not committed, and its provider wants them back")
	}
	for _, e := range l.reasoning {
		sealed := e.Block != nil && !e.Block.Form().Seal.IsZero()
		switch {
		case !e.InPrompt && (sealed || requiresReasoning || !targetRefuses):
			add(ruleLeftOut, e, "reasoning of the open tool loop is left out ("+string(e.Why())+"), and its provider wants it back")
		case e.InPrompt && sealed && !e.EditedBy().IsZero():
			add(ruleEdited, e, "sealed reasoning of the open tool loop was edited, and its provider wants it back unchanged")
		}
	}
	for i := 1; i < len(l.sent); i++ {
		if l.sent[i].Index < l.sent[i-1].Index {
			add(ruleOrder, l.sent[i], "the blocks of a reply are not in the order in which they came")
		}
	}
	return list
}
