package tract

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// Pending returns the tool calls at the end of the branch that wait for a result. A program
// that was interrupted can continue with them.
func (b *Branch) Pending(ctx context.Context) ([]content.ToolCall, error) {
	pending, err := b.pendingWithCommits(ctx)
	if err != nil {
		return nil, err
	}
	var calls []content.ToolCall
	for _, p := range pending {
		calls = append(calls, p.Call)
	}
	return calls, nil
}

// pendingWithCommits is Pending with the commits of the calls.
func (b *Branch) pendingWithCommits(ctx context.Context) ([]compile.Pending, error) {
	tip, err := b.Tip(ctx)
	if err != nil || tip.IsZero() {
		return nil, err
	}
	p, err := b.repo.promptIfLastTurnUsedTools(ctx, tip)
	if err != nil || p == nil {
		return nil, err
	}
	return p.Pending, nil
}

// promptIfLastTurnUsedTools compiles the prompt of a history whose last turn used tools. For any
// other history it returns nil, because no tool loop is open there.
func (r *Repo) promptIfLastTurnUsedTools(ctx context.Context, tip objects.ID) (*compile.Prompt, error) {
	if used, err := history.UsedTools(ctx, r.store, tip); err != nil || !used {
		return nil, err
	}
	return compile.Chain(ctx, r.store, tip, compile.Options{})
}

// PendingError is the error for a request while tool calls wait for their results.
type PendingError struct {
	Branch string
	Calls  []content.ToolCall
}

// Error names the calls.
func (e *PendingError) Error() string {
	names := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		names[i] = c.CallID
	}
	return fmt.Sprintf("generate: branch %s has tool calls without a result: %s", e.Branch, strings.Join(names, ", "))
}

// newPendingError returns the error for tool calls that wait for results.
func newPendingError(branch string, pending []compile.Pending) *PendingError {
	e := &PendingError{Branch: branch}
	for _, p := range pending {
		e.Calls = append(e.Calls, p.Call)
	}
	return e
}

// ResultError is the error for a tool result that answers no tool call which waits for one.
// Every prompt would leave such a result out, so Append refuses it. An imported or recorded
// result is a fact and is kept: [Repo.Check] warns of it.
type ResultError struct {
	Branch string
	CallID string
	Call   objects.ID // the newest call of the id on the branch; zero: there is none
	Result objects.ID // the result that the call has; zero: it has none
	Twice  bool       // the blocks to append have two results for the call
}

// Error says why the result answers no call.
func (e *ResultError) Error() string {
	why := "no call of that id is on branch " + e.Branch
	switch {
	case e.Twice:
		why = "the same call is given two results"
	case !e.Result.IsZero():
		why = fmt.Sprintf("its call %s has a result already: %s", e.Call.Short(), e.Result.Short())
	case !e.Call.IsZero():
		why = fmt.Sprintf("its call %s no longer waits: its turn ended without a result", e.Call.Short())
	}
	return fmt.Sprintf("tool result %q: %s", e.CallID, why)
}

// callState is the state of the newest tool call with an id.
type callState struct {
	call     content.ToolCall
	id       objects.ID // of its commit; zero: it is in an earlier draft
	result   objects.ID // zero: the history has none
	answered bool       // an earlier draft has the result
	closed   bool       // its turn is over
}

// checkAndNameResults returns a *[ResultError] for a tool result in drafts for which no call waits,
// neither on the history of tip nor in an earlier draft. It sets the tool's name of a result
// that has none to that of the call. If the history cannot be read, it checks nothing:
// blocks can still be appended.
func (b *Branch) checkAndNameResults(ctx context.Context, tip *commit.Commit, drafts []commit.Draft) error {
	wanted := answeredCallsNotInDrafts(drafts)
	calls := map[string]*callState{}
	if len(wanted) > 0 && tip != nil {
		if err := b.findCalls(ctx, tip.ID, wanted, calls); err != nil {
			return nil //nolint:nilerr // see above
		}
	}
	for i := range drafts {
		d := &drafts[i]
		if d.Role == content.RoleUser && d.Index == 0 { // a turn begins
			for _, call := range calls {
				call.closed = true
			}
		}
		switch v := d.Block.(type) {
		case content.ToolCall:
			calls[v.CallID] = &callState{call: v}
		case content.ToolResult:
			if v.Server {
				continue
			}
			at := calls[v.CallID]
			if at == nil || at.answered || at.closed || !at.result.IsZero() {
				at = cmp.Or(at, &callState{})
				return &ResultError{Branch: b.name, CallID: v.CallID, Call: at.id, Result: at.result, Twice: at.answered}
			}
			at.answered = true
			v.Name = cmp.Or(v.Name, at.call.Name)
			d.Block = v
		}
	}
	return nil
}

// answeredCallsNotInDrafts returns the ids of the tool calls that the results in drafts answer and that
// are not in drafts themselves.
func answeredCallsNotInDrafts(drafts []commit.Draft) (callIDs map[string]bool) {
	made, wanted := map[string]bool{}, map[string]bool{}
	for i := range drafts {
		switch v := drafts[i].Block.(type) {
		case content.ToolCall:
			made[v.CallID] = true
		case content.ToolResult:
			if !made[v.CallID] && !v.Server {
				wanted[v.CallID] = true
			}
		}
	}
	return wanted
}

// findCalls finds the newest calls with some ids. It walks from the tip until it has them
// all. A call that waits is in the open turn, so only an id without a call takes a walk to
// the root.
func (b *Branch) findCalls(ctx context.Context, tip objects.ID, wanted map[string]bool, calls map[string]*callState) error {
	results, closed := map[string]objects.ID{}, false
	for c, err := range commit.Walk(ctx, b.repo.store, tip, 0) {
		if err != nil {
			return err
		}
		if c.Op == commit.Append && (c.Kind == content.KindToolCall || c.Kind == content.KindToolResult) {
			if err := commit.Load(ctx, b.repo.store, c); err != nil {
				return err
			}
			switch v := c.Block.(type) {
			case content.ToolResult:
				results[v.CallID] = cmp.Or(results[v.CallID], c.ID)
			case content.ToolCall:
				if wanted[v.CallID] && calls[v.CallID] == nil {
					calls[v.CallID] = &callState{call: v, id: c.ID, result: results[v.CallID], closed: closed}
				}
			}
		}
		if len(calls) == len(wanted) {
			return nil
		}
		closed = closed || c.Op == commit.Merge || c.BeginsTurn()
	}
	return nil
}
