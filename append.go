package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// ErrEmpty says that a block has nothing in it.
var ErrEmpty = errors.New("nothing to commit: the text is empty")

// maxKeyed is how far back an idempotency key is looked for.
const maxKeyed = 1000

// Append adds blocks to the branch as one turn, in one transaction, and returns
// their commits. It lands on the tip as it is by then, whoever else adds. Blocks
// of one role that follow one another are one message. An idempotency key makes a call safe
// to repeat: when one of the last 1,000 commits of the branch has the key, nothing is done
// and the commits of the first call are returned; other content under the same key is a
// *[KeyError]. OnWarning is told of each tool call that waits for a result when the user
// speaks: prompts leave it out from then on. The result of a tool has to answer a call that
// waits for one: else it is a *[ResultError].
func (b *Branch) Append(ctx context.Context, blocks []content.Block, o AppendOptions) ([]objects.ID, error) {
	c, err := b.repo.appending(o)
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
		b.warnUnanswered(ctx, c, blocks)
	}
	return b.write(ctx, c, "append", func(tip *commit.Commit) ([]commit.Draft, error) {
		drafts := c.drafts(b.name, tip, blocks)
		return drafts, b.checkResults(ctx, tip, drafts)
	})
}

// warnUnanswered tells of the tool calls that blocks, which are about to be added, leave
// without a result. A history that cannot be read is no reason not to add to it.
func (b *Branch) warnUnanswered(ctx context.Context, c *call, blocks []content.Block) {
	speaks := func(block content.Block) bool {
		return c.role == content.RoleUser || c.role == content.NoRole && content.RoleOf(block) == content.RoleUser
	}
	if !slices.ContainsFunc(blocks, speaks) {
		return
	}
	pending, _ := b.pending(ctx)
	for _, p := range pending {
		c.warn(unanswered(p.Commit, p.Call))
	}
}

// AppendUser adds what a person says: an Append of one block.
func (b *Branch) AppendUser(ctx context.Context, text string) (objects.ID, error) {
	ids, err := b.Append(ctx, []content.Block{content.User(text)}, AppendOptions{})
	if err != nil {
		return objects.ID{}, err
	}
	return ids[0], nil
}

// write adds the drafts that make gives for a tip, on whatever tip there is.
func (b *Branch) write(ctx context.Context, c *call, command string, make func(tip *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	if err := refs.Check(b.name); err != nil {
		return nil, fmt.Errorf("%s: branch %w", command, err)
	}
	var ids []objects.ID
	commits, err := history.Write(ctx, b.repo.store, b.ref(), c.note(ctx, command), b.repo.header, func(tip *commit.Commit) (drafts []commit.Draft, err error) {
		ids = nil
		if !c.key.IsZero() && tip != nil {
			if ids, err = b.repeated(ctx, c, tip.ID, make); err != nil || len(ids) > 0 {
				return nil, err
			}
		}
		drafts, err = make(tip)
		return c.masked(drafts), err
	})
	if err != nil {
		return nil, fmt.Errorf("%s on branch %s: %w", c.verb(command), b.name, err)
	}
	for _, written := range commits {
		ids = append(ids, written.ID)
		b.repo.headers.put(written)
	}
	return ids, nil
}

// batch is the batch that moves the branch from at to the last of commits.
func (b *Branch) batch(note objects.Note, at objects.ID, commits []*commit.Commit, put []objects.Object, ids *[]objects.ID) objects.Batch {
	batch := objects.Batch{Put: put, Note: note}
	for _, written := range commits {
		*ids = append(*ids, written.ID)
		b.repo.headers.put(written)
	}
	if n := len(commits); n > 0 {
		batch.Refs = []objects.RefUpdate{{Name: b.ref(), Old: at, New: commits[n-1].ID}}
	}
	return batch
}

// verb is the command that the operation of a call is named by.
func (c *call) verb(command string) string {
	if c.operation == nil {
		return command
	}
	return c.operation.Command(command)
}

// note is the note of one batch, however often that is tried.
func (c *call) note(ctx context.Context, command string) objects.Note {
	if c.operation == nil {
		c.operation = history.OperationOf(ctx)
	}
	return c.operation.Note(c.now, c.author, command)
}

// repeated finds the commits that an earlier call made with the idempotency key of this
// one, oldest first; none: there was no such call. Other content than theirs is a
// *[KeyError], but another reply with the same id is added: that id is not ours to choose.
func (b *Branch) repeated(ctx context.Context, c *call, tip objects.ID, make func(tip *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	done, err := b.keyed(ctx, tip, c.key)
	if err != nil || len(done) == 0 {
		return nil, err
	}
	first, err := b.repo.header(ctx, done[0])
	if err != nil {
		return nil, err
	}
	parent, err := b.repo.header(ctx, first.Parent())
	if err != nil {
		return nil, err
	}
	drafts, err := make(parent) // as it was then
	if err != nil {
		now, bad := b.repo.header(ctx, tip)
		if bad != nil {
			return nil, bad
		}
		parent = now
		if drafts, err = make(now); err != nil {
			return done, nil //nolint:nilerr // neither history allows it: that cannot be compared
		}
	}
	wanted, _, err := c.commits(parent, drafts...)
	if err != nil {
		return nil, err
	}
	if c.key.Kind == commit.KeyResponse && len(done) > len(wanted) {
		done = done[len(done)-len(wanted):] // replies with one id, one behind the other
	}
	same := len(done) == len(wanted)
	for i := 0; same && i < len(done); i++ {
		have, err := b.repo.header(ctx, done[i])
		if err != nil {
			return nil, err
		}
		same = sameContent(have, wanted[i])
	}
	switch {
	case same:
		return done, nil
	case c.key.Kind != commit.KeyResponse:
		return nil, &KeyError{Key: c.key.Text, Commit: done[0]}
	default:
		c.warn(Problem{Commit: done[0], Problem: llm.Problem{Rule: ruleReplyID, Warning: true, Message: "another reply has the same id: both are kept"}})
	}
	return nil, nil
}

// sameContent reports whether two commits do the same, whenever and after whatever.
func sameContent(a, b *commit.Commit) bool {
	return a.Op == b.Op && a.Kind == b.Kind && a.Role == b.Role && a.ContentID == b.ContentID &&
		a.Target == b.Target && a.First == b.First && a.Scope == b.Scope && a.Priority == b.Priority
}

// keyed finds the commits with an idempotency key, oldest first.
func (b *Branch) keyed(ctx context.Context, tip objects.ID, key commit.Key) ([]objects.ID, error) {
	var ids []objects.ID
	for c, err := range commit.Walk(ctx, b.repo.store, tip, maxKeyed) {
		if err != nil {
			return nil, err
		}
		if c.Key == key {
			ids = append(ids, c.ID)
		} else if len(ids) > 0 {
			break
		}
	}
	slices.Reverse(ids)
	return ids, nil
}
