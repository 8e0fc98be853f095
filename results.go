package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// ResultError says that the result of a tool answers no call that waits for one. Every
// prompt would leave such a result out, so Append refuses it. What is imported or recorded
// happened, and is kept: [Repo.Check] warns of it.
type ResultError struct {
	Branch string
	CallID string
	Call   objects.ID // the newest call of the id on the branch; zero: there is none
	Result objects.ID // the result that the call has; zero: it has none
	Twice  bool       // the blocks to append hold two results for the call
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
		why = fmt.Sprintf("its call %s no longer waits: the turn ended without a result", e.Call.Short())
	}
	return fmt.Sprintf("tool result %q: %s", e.CallID, why)
}

// askedCall is what is known of the newest call of an id, for a result of it.
type askedCall struct {
	made         bool             // there is a call
	call, result objects.ID       // where they are on the history; zero: not there
	block        content.ToolCall // of the history
	twice        bool             // a result is among the blocks to append
	closed       bool             // its turn is over
}

// refusal is the error for a result of the call; nil when the call waits for one.
func (a *askedCall) refusal(branch, id string) error {
	e := &ResultError{Branch: branch, CallID: id, Call: a.call, Twice: a.twice}
	if a.made {
		e.Result = a.result
	}
	if a.made && a.result.IsZero() && !a.twice && !a.closed {
		return nil
	}
	return e
}

// findCalls looks for the newest calls of some ids, from the tip of a history back until
// all are found. One that waits is in the open turn, so that only an id that no call has
// takes a walk to the root.
func (b *Branch) findCalls(ctx context.Context, tip objects.ID, wanted map[string]*askedCall) error {
	if tip.IsZero() {
		return nil
	}
	missing, closed := len(wanted), false
	for c, err := range commit.Walk(ctx, b.repo.store, tip, 0) {
		if err != nil {
			return err
		}
		if c.Op == commit.Append && (c.Kind == content.KindToolCall || c.Kind == content.KindToolResult) {
			block, err := b.repo.blockOf(ctx, c)
			if err != nil {
				return err
			}
			if noteCall(wanted, c.ID, block, closed) {
				missing--
			}
		}
		if missing == 0 {
			return nil
		}
		closed = closed || c.Op == commit.Merge || c.BeginsTurn()
	}
	return nil
}

// noteCall takes note of a call or a result of a history that is read from its end, and
// reports whether it is a call that was looked for.
func noteCall(wanted map[string]*askedCall, id objects.ID, block content.Block, closed bool) (found bool) {
	if result, ok := block.(content.ToolResult); ok {
		if a := wanted[result.CallID]; a != nil && !a.made && a.result.IsZero() {
			a.result = id
		}
	}
	call, ok := block.(content.ToolCall)
	if !ok {
		return false
	}
	a := wanted[call.CallID]
	if found = a != nil && !a.made; found {
		a.made, a.call, a.block, a.closed = true, id, call, closed
	}
	return found
}

// checkResults refuses drafts with a result that answers no call which waits for one: on the
// history of tip, or in a draft before it. A history that cannot be read is no reason not
// to add to it.
func (b *Branch) checkResults(ctx context.Context, tip *commit.Commit, drafts []commit.Draft) error {
	made, wanted := map[string]bool{}, map[string]*askedCall{}
	for i := range drafts {
		switch v := drafts[i].Block.(type) {
		case content.ToolCall:
			made[v.CallID] = true
		case content.ToolResult:
			if !made[v.CallID] && !v.Server {
				wanted[v.CallID] = &askedCall{}
			}
		}
	}
	if len(wanted) > 0 && tip != nil {
		if err := b.findCalls(ctx, tip.ID, wanted); err != nil {
			return nil //nolint:nilerr // see above
		}
	}
	for i := range drafts {
		d := &drafts[i]
		if d.Role == content.RoleUser && d.Index == 0 { // a turn begins
			for _, a := range wanted {
				a.closed = true
			}
		}
		if err := b.matchResult(d, wanted); err != nil {
			return err
		}
	}
	return nil
}

// matchResult takes note of a call, or of a result if a call waits for it. A result without
// the name of its tool gets that of the call.
func (b *Branch) matchResult(d *commit.Draft, wanted map[string]*askedCall) error {
	if call, ok := d.Block.(content.ToolCall); ok {
		wanted[call.CallID] = &askedCall{made: true, block: call}
	}
	result, ok := d.Block.(content.ToolResult)
	if !ok || result.Server {
		return nil
	}
	call := wanted[result.CallID]
	if err := call.refusal(b.name, result.CallID); err != nil {
		return err
	}
	call.twice = true
	if result.Name == "" {
		result.Name = call.block.Name
		d.Block = result
	}
	return nil
}
