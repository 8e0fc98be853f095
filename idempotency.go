package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// KeyError is the error for an idempotency key that an earlier call used for other content.
// Nothing was changed.
type KeyError struct {
	Key    string
	Commit objects.ID // the first that has the key
}

// Error names the key and the commit.
func (e *KeyError) Error() string {
	return fmt.Sprintf("the idempotency key %q was used for other content: commit %s", e.Key, e.Commit.Short())
}

// keySearchLimit is the number of commits in which an idempotency key is searched for.
const keySearchLimit = 1000

// earlierCommits returns the commits that an earlier call made with the idempotency key of
// this one, oldest first; none when there was no such call. Other content is a *[KeyError],
// except when the key is the id of a response: the provider chooses that id, so another
// response with the same id is added.
func (b *Branch) earlierCommits(ctx context.Context, c *callOptions, tip objects.ID, draft func(tip *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	done, err := b.lastCommitsWithKey(ctx, tip, c.key)
	if err != nil || len(done) == 0 {
		return nil, err
	}
	have, err := commit.ReadHeaders(ctx, b.repo.store, done)
	if err != nil {
		return nil, err
	}
	parent, err := b.repo.header(ctx, have[0].Parent())
	if err != nil {
		return nil, err
	}
	drafts, err := draft(parent) // on the history of the earlier call
	if err != nil {
		now, bad := b.repo.header(ctx, tip)
		if bad != nil {
			return nil, bad
		}
		parent = now
		if drafts, err = draft(now); err != nil {
			return done, nil //nolint:nilerr // neither history allows the drafts, so they cannot be compared
		}
	}
	wanted, _, err := c.maskAndBuild(parent, drafts...)
	if err != nil {
		return nil, err
	}
	if c.key.Kind == commit.KeyResponse && len(done) > len(wanted) {
		done, have = done[len(done)-len(wanted):], have[len(done)-len(wanted):] // consecutive responses with the same id
	}
	switch {
	case slices.EqualFunc(have, wanted, equalIgnoringParentAndTime):
		return done, nil
	case c.key.Kind != commit.KeyResponse:
		return nil, &KeyError{Key: c.key.Text, Commit: done[0]}
	default:
		c.callOnWarning(Problem{Commit: done[0], Problem: llm.Problem{Rule: ruleReplyID, Warning: true, Message: "another response has the same id: both are kept"}})
	}
	return nil, nil
}

// equalIgnoringParentAndTime reports whether two commits do the same: operation, content, role, target
// and priority are equal. Times, parents, authors, origins and labels are not compared.
func equalIgnoringParentAndTime(a, b *commit.Commit) bool {
	return a.Op == b.Op && a.Kind == b.Kind && a.Role == b.Role && a.ContentID == b.ContentID &&
		a.Target == b.Target && a.First == b.First && a.Scope == b.Scope && a.Priority == b.Priority
}

// lastCommitsWithKey returns the latest commits with an idempotency key, oldest first.
func (b *Branch) lastCommitsWithKey(ctx context.Context, tip objects.ID, key commit.Key) ([]objects.ID, error) {
	var ids []objects.ID
	for c, err := range commit.Walk(ctx, b.repo.store, tip, keySearchLimit) {
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
