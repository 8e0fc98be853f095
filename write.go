package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// write commits drafts to the branch in one batch and returns the ids of their commits. It
// calls draft with the tip, which is nil on a branch without commits, and again when the
// branch moved meanwhile. With an idempotency key, the commits of an earlier call with that
// key are returned.
func (b *Branch) write(ctx context.Context, c *callOptions, command string, draft func(tip *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	if err := refs.Check(b.name); err != nil {
		return nil, fmt.Errorf("%s: branch %w", command, err)
	}
	var ids []objects.ID
	commits, err := history.Write(ctx, b.repo.store, b.ref(), c.note(ctx, command), func(tip *commit.Commit) (drafts []commit.Draft, err error) {
		ids = nil
		if !c.key.IsZero() && tip != nil {
			if ids, err = b.earlierCommits(ctx, c, tip.ID, draft); err != nil || len(ids) > 0 {
				return nil, err
			}
		}
		drafts, err = draft(tip)
		return c.maskAndReportDrafts(drafts), err
	})
	if moved := (*ConflictError)(nil); errors.As(err, &moved) {
		return nil, moved
	}
	if err != nil {
		return nil, fmt.Errorf("%s on branch %s: %w", c.operationName(command), b.name, err)
	}
	return append(ids, commitIDs(commits)...), nil
}

// commitIDs returns the ids of commits.
func commitIDs(commits []*commit.Commit) (ids []objects.ID) {
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	return ids
}

// newBatch returns the batch that puts the objects of put, the commits among them, and moves the
// branch from from to the last commit. Without commits it moves no ref.
func (b *Branch) newBatch(note objects.Note, from objects.ID, commits []*commit.Commit, put []objects.Object) objects.Batch {
	batch := objects.Batch{Put: put, Note: note}
	if n := len(commits); n > 0 {
		batch.Refs = []objects.RefUpdate{{Name: b.ref(), Old: from, New: commits[n-1].ID}}
	}
	return batch
}

// operationName returns the name of the operation that the call is part of.
func (c *callOptions) operationName(command string) string {
	if c.operation == nil {
		return command
	}
	return c.operation.Command(command)
}

// note returns the note of one batch of the call, however often the batch is tried.
func (c *callOptions) note(ctx context.Context, command string) objects.Note {
	if c.operation == nil {
		c.operation = history.OperationOf(ctx)
	}
	return c.operation.Note(c.now, c.author, command)
}

// newDraftWithoutRoleOrPriority returns the draft of a commit of a block, with the time, author, key
// and label of the call. The role is that of the kind of the block, unless the caller sets it.
func (c *callOptions) newDraftWithoutRoleOrPriority(block content.Block, origin *commit.Origin) commit.Draft {
	return commit.Draft{Block: block, Time: c.time, Author: c.author, Key: c.key, Origin: origin, Label: c.label}
}

// originsBySource makes the origins of blocks that a person or a tool adds. Blocks of one source
// share an origin.
type originsBySource struct {
	base commit.Origin // the fields that all of them have
	made []*commit.Origin
}

// get returns the origin of the blocks of a source; it makes each once.
func (o *originsBySource) get(source commit.Source) *commit.Origin {
	for _, one := range o.made {
		if one.Source == source {
			return one
		}
	}
	one := o.base
	one.Source = source
	o.made = append(o.made, &one)
	return &one
}

// newDrafts returns the drafts of blocks that a person or a tool adds after tip. role returns
// the role of a block.
func (c *callOptions) newDrafts(tip *commit.Commit, blocks []content.Block, from *originsBySource, role func(content.Block) content.Role) []commit.Draft {
	drafts := make([]commit.Draft, len(blocks))
	for i, block := range blocks {
		source := commit.SourceUser
		if block.Kind() == content.KindToolResult {
			source = commit.SourceTool
		}
		d := c.newDraftWithoutRoleOrPriority(block, from.get(source))
		d.Role, d.Priority = role(block), c.priority
		switch {
		case i == 0 && continuesMessage(tip, &d):
			d.Index = tip.Index + 1
		case i > 0 && canShareMessage(d.Role) && drafts[i-1].Role == d.Role:
			d.Index = drafts[i-1].Index + 1
		}
		drafts[i] = d
	}
	return drafts
}

// canShareMessage reports whether consecutive blocks of a role form one message.
func canShareMessage(role content.Role) bool {
	return role != content.NoRole && role != content.RoleSystem
}

// continuesMessage reports whether a block is part of the message of the last commit, which an
// earlier call added: both have the same origin and are parts of one message of a model
// (reasoning, a tool call, or what follows them) or tool results.
func continuesMessage(last *commit.Commit, d *commit.Draft) bool {
	if last == nil || last.Op != commit.Append || last.Role != d.Role || !canShareMessage(d.Role) {
		return false
	}
	part := func(k content.Kind) bool { return k == content.KindReasoning || k == content.KindToolCall }
	goesOn := d.Role == content.RoleTool || d.Role == content.RoleAssistant && (part(last.Kind) || d.Block.Kind() == content.KindToolCall)
	return goesOn && last.OriginID == d.Origin.Object().ID // last, because hashing takes longest
}

// maskAndBuild masks drafts and returns their commits and objects, as commit.Write does.
func (c *callOptions) maskAndBuild(parent *commit.Commit, drafts ...commit.Draft) (commits []*commit.Commit, put []objects.Object, err error) {
	var w commit.Writer
	commits, err = c.maskAndWrite(&w, parent, drafts...)
	return commits, w.Objects(), err
}

// maskAndWrite masks drafts and adds their commits to a writer.
func (c *callOptions) maskAndWrite(w *commit.Writer, parent *commit.Commit, drafts ...commit.Draft) ([]*commit.Commit, error) {
	commits := make([]*commit.Commit, len(drafts))
	for i, d := range c.maskAndReportDrafts(drafts) {
		made, err := w.Write(parent, &d)
		if err != nil {
			return nil, err
		}
		commits[i], parent = made, made
	}
	return commits, nil
}

// draftOf returns the draft that repeats a commit on another parent.
func draftOf(c *commit.Commit) commit.Draft {
	d := commit.Draft{
		Op: c.Op, Role: c.Role, Index: c.Index, Target: c.Target, First: c.First, Scope: c.Scope, Priority: c.Priority,
		Time: c.Time, Author: c.Author, Key: c.Key, Origin: c.Origin, Label: c.Label,
	}
	copyBlockOrTombstone(&d, c)
	return d
}

// copyBlockOrTombstone gives a draft the block of a commit. Purged content stays purged.
func copyBlockOrTombstone(to *commit.Draft, from *commit.Commit) {
	if to.Block, to.CopyPurged = from.Block, nil; from.Tombstone != nil {
		to.Block, to.CopyPurged = nil, from
	}
}
