package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// AppendOptions are the options of [Branch.Append].
type AppendOptions struct {
	Author    string            // empty: the author of the Repo
	Label     string            // a line for people, never sent
	Meta      map[string]string // named values
	Key       string            // idempotency key, see [Branch.Append]
	Time      time.Time         // of the commits, in the years 0 to 9999 of UTC; zero: now
	Priority  priority.Level    // Unset: the rules decide
	Role      content.Role      // NoRole: the usual role of each block; not used by AppendResponse
	External  bool              // the blocks come from another program: their secrets are masked as those of an import
	OnWarning func(Problem)     // is called by Append for each tool call that stays without a result, by AppendResponse for another response with the same id
}

// ErrEmpty is the error for a block without content.
var ErrEmpty = errors.New("nothing to commit: the text is empty")

// Append adds blocks to the branch as one turn, in one transaction, and returns their
// commits. It appends to the branch's current tip, even while other writers append.
// Consecutive blocks of one role are one message. An idempotency key makes a call safe to
// repeat: when one of the last 1,000 commits of the branch has the key, nothing is written
// and the commits of the first call are returned; the same key with other content is a
// *[KeyError]. When a user block is appended, OnWarning is called for each tool call that
// still waits for a result: prompts leave such a call out from then on. A tool result must
// answer a tool call that waits for one; otherwise the error is a *[ResultError].
func (b *Branch) Append(ctx context.Context, blocks []content.Block, o AppendOptions) ([]objects.ID, error) {
	c, err := b.repo.resolveAppend(o)
	if err != nil {
		return nil, err
	}
	if err := content.CheckBlocks(blocks); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	for _, block := range blocks {
		if content.IsEmpty(block) {
			return nil, fmt.Errorf("append %s: %w", block.Kind(), ErrEmpty)
		}
		if r, ok := block.(content.Reasoning); ok && r.Format != "" {
			if _, err := content.ParseFormat(string(r.Format)); err != nil {
				return nil, fmt.Errorf("append: %w", err)
			}
		}
	}
	if o.OnWarning != nil {
		b.warnOfUnansweredCalls(ctx, c, blocks)
	}
	return b.write(ctx, c, "append", func(tip *commit.Commit) ([]commit.Draft, error) {
		drafts := c.newDrafts(tip, blocks, &originsBySource{base: commit.Origin{Session: b.name}}, c.explicitOrUsualRole)
		return drafts, b.checkAndNameResults(ctx, tip, drafts)
	})
}

// AppendUser appends one user block.
func (b *Branch) AppendUser(ctx context.Context, text string) (objects.ID, error) {
	return onlyID(b.Append(ctx, []content.Block{content.User(text)}, AppendOptions{}))
}

// onlyID returns the id of the only commit that was written.
func onlyID(ids []objects.ID, err error) (objects.ID, error) {
	if err != nil {
		return objects.ID{}, err
	}
	return ids[0], nil
}

// warnOfUnansweredCalls calls OnWarning for each tool call that is left without a result when
// blocks are appended. If the history cannot be read, it warns of nothing: blocks can still
// be appended.
func (b *Branch) warnOfUnansweredCalls(ctx context.Context, c *callOptions, appended []content.Block) {
	fromUser := func(block content.Block) bool { return c.explicitOrUsualRole(block) == content.RoleUser }
	if !slices.ContainsFunc(appended, fromUser) {
		return
	}
	pending, _ := b.pendingWithCommits(ctx)
	for _, p := range pending {
		c.callOnWarning(unansweredCallWarning(p.Commit, p.Call))
	}
}
