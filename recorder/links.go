package recorder

import (
	"context"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/objects"
)

// maxCalls is the number of a parent's last calls that linkParent looks at.
const maxCalls = 32

// linkParent finds the call that started a sub-agent, and stores it in the details of the
// destination. It is the parent's newest call that is linked to no other sub-agent and has an
// argument equal to one of the sub-agent's user messages.
func (x *index) linkParent(ctx context.Context, req *clientRequest, dest *destination) error {
	parent := req.identity
	parent.agent, parent.parent, parent.side = req.identity.parent, "", ""
	list, err := x.threadsOfIdentity(ctx, identityKey(parent.details()), parent.branchName(x.prefix, false))
	if err != nil {
		return err
	}
	texts := userTexts(req.masked)
	for _, t := range slices.Backward(list) {
		calls := 0
		for _, e := range slices.Backward(t.entries) {
			if e.Kind != content.KindToolCall || e.Ref.IsZero() || x.isLinked(e.Ref.String()) {
				continue
			}
			if calls++; calls > maxCalls {
				break
			}
			c, err := x.readCommit(ctx, e.Ref)
			if err != nil {
				return err
			}
			if call, ok := c.Block.(content.ToolCall); ok && x.hasArgumentAmong(call, texts) {
				dest.details[history.LinkCall], dest.details[history.LinkParent] = call.CallID, c.ID.String()
				return nil
			}
		}
	}
	return nil
}

// readCommit returns a commit with its block.
func (x *index) readCommit(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	c, err := commit.Read(ctx, x.repo.Store(), id)
	if err == nil {
		err = commit.Load(ctx, x.repo.Store(), c)
	}
	return c, err
}

// isLinked reports whether a sub-agent is linked to a call, given the id of its commit.
func (x *index) isLinked(callCommit string) bool {
	for _, t := range x.threads {
		if t.details[history.LinkParent] == callCommit {
			return true
		}
	}
	return false
}

// userTexts returns the texts of all user blocks.
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

// hasArgumentAmong reports whether a string argument of a call is one of the texts.
func (x *index) hasArgumentAmong(call content.ToolCall, texts []string) bool {
	arguments, err := rawjson.Parse([]byte(x.maskedBlock(call).String()))
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
