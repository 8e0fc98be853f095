package recorder

import (
	"context"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// mostCalls is how many calls of a parent are looked at: those of its last responses.
const mostCalls = 32

// linkParent finds the call that started a sub-agent: the newest one of the parent whose
// arguments have the text that the sub-agent is asked with, and that no other sub-agent has.
func (x *index) linkParent(ctx context.Context, a *asked, p *place) error {
	parent := a.claim
	parent.agent, parent.parent, parent.side = a.claim.parent, "", ""
	list, err := x.ofClaim(ctx, claimKey(parent.details()), parent.branch(x.prefix, false))
	if err != nil {
		return err
	}
	texts := userTexts(a.messages)
	for _, t := range slices.Backward(list) {
		calls := 0
		for _, e := range slices.Backward(t.entries) {
			if e.Kind != content.KindToolCall || e.Ref.IsZero() || x.isLinked(e.Ref.String()) {
				continue
			}
			if calls++; calls > mostCalls {
				break
			}
			c, err := commit.Read(ctx, x.repo.Store(), e.Ref)
			if err == nil {
				err = commit.Load(ctx, x.repo.Store(), c)
			}
			if err != nil {
				return err
			}
			if call, ok := c.Block.(content.ToolCall); ok && x.asks(call, texts) {
				p.details[history.LinkCall], p.details[history.LinkParent] = call.CallID, c.ID.String()
				return nil
			}
		}
	}
	return nil
}

// isLinked reports whether a sub-agent is linked to the commit of a call.
func (x *index) isLinked(call string) bool {
	for _, t := range x.threads {
		if t.details[history.LinkParent] == call {
			return true
		}
	}
	return false
}

// userTexts returns what the user's side of a conversation says.
func userTexts(messages []content.Message) (texts []string) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Kind() == content.KindUser {
				texts = append(texts, strings.TrimSpace(b.String()))
			}
		}
	}
	return texts
}

// asks reports whether an argument of a call is one of some texts.
func (x *index) asks(call content.ToolCall, texts []string) bool {
	arguments, err := rawjson.Parse([]byte(x.masked(call).String()))
	if err != nil {
		return false
	}
	for _, value := range arguments.Members() {
		if value.Kind() == rawjson.KindString && slices.Contains(texts, strings.TrimSpace(value.Text())) {
			return true
		}
	}
	return false
}
