package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// CherryPick commits blocks of other histories again on the branch, in one transaction, and
// returns the new commits. A revision may be a range A..B. A tool call is copied with its
// result and its reasoning, a result with its call. An edit or an annotation is committed
// again for its block, or for the copy of that block.
func (b *Branch) CherryPick(ctx context.Context, revs []string) ([]objects.ID, error) {
	c := b.repo.defaultOptions()
	p := &picker{repo: b.repo, has: map[objects.ID]bool{}}
	for _, rev := range revs {
		if err := p.addRevision(ctx, b, rev); err != nil {
			return nil, fmt.Errorf("cherry-pick %s: %w", rev, err)
		}
	}
	if err := commit.LoadAll(ctx, b.repo.store, p.list...); err != nil {
		return nil, fmt.Errorf("cherry-pick: %w", err)
	}
	return b.write(ctx, c, "cherry-pick", func(tip *commit.Commit) ([]commit.Draft, error) {
		return b.draftCopies(ctx, c, tip, p.list)
	})
}

// picker collects the commits to copy, each once.
type picker struct {
	repo *Repo
	list []*commit.Commit
	has  map[objects.ID]bool
}

// add adds commits, each once.
func (p *picker) add(commits ...*commit.Commit) {
	for _, c := range commits {
		if !p.has[c.ID] {
			p.has[c.ID], p.list = true, append(p.list, c)
		}
	}
}

// addRevision adds the commits of a revision or of a range.
func (p *picker) addRevision(ctx context.Context, b *Branch, rev string) error {
	from, to, err := b.resolver().Range(ctx, rev)
	if err != nil {
		return err
	}
	if !from.IsZero() {
		list, err := commit.IncomingCommits(ctx, p.repo.store, from, to)
		for _, c := range list {
			if err == nil && c.Op != commit.Merge && c.Op != commit.Compress {
				err = p.addWithPairAndReasoning(ctx, c)
			}
		}
		return err
	}
	c, err := p.repo.header(ctx, to)
	if err != nil {
		return err
	}
	if c.Op == commit.Compress {
		return &refs.UnknownError{Rev: rev, Why: "it is a summary of the commits before it; use tract compress to make one here"}
	}
	if c.Op == commit.Merge {
		return &refs.UnknownError{Rev: rev, Why: "it is a merge; name the commits that it brought, such as " + c.Parents[0].Short() + ".." + c.Parents[1].Short()}
	}
	return p.addWithPairAndReasoning(ctx, c)
}

// addWithPairAndReasoning adds a commit; of a tool call or a tool result also its counterpart and the
// reasoning before the call.
func (p *picker) addWithPairAndReasoning(ctx context.Context, c *commit.Commit) error {
	if c.Op != commit.Append || c.Kind != content.KindToolCall && c.Kind != content.KindToolResult {
		p.add(c)
		return nil
	}
	call, result, err := p.repo.toolPair(ctx, c)
	if err != nil {
		return err
	}
	thoughts, err := p.repo.reasoningBefore(ctx, call)
	if err != nil {
		return err
	}
	p.add(thoughts...)
	p.add(call)
	if result != nil {
		p.add(result)
	}
	return nil
}

// toolPair returns the tool call and the result that belong together. A call that the
// provider ran may have no result of its own.
func (r *Repo) toolPair(ctx context.Context, c *commit.Commit) (call, result *commit.Commit, err error) {
	if err := commit.Load(ctx, r.store, c); err != nil {
		return nil, nil, err
	}
	if b, ok := c.Block.(content.ToolResult); ok {
		call, err = r.findCallBefore(ctx, c, b.CallID)
		return call, c, err
	}
	b := c.Block.(content.ToolCall)
	branches, err := r.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads, Newest: true})
	if err != nil {
		return nil, nil, err
	}
	for _, branch := range branches {
		result, err := r.findResultAfter(ctx, branch.Target, c, b.CallID)
		if err != nil || result != nil {
			return c, result, err
		}
	}
	if b.Server {
		return c, nil, nil
	}
	return nil, nil, &ToolLoopError{Operation: "the call cannot be copied alone", Where: c.ID.Short(), Calls: []string{b.CallID}}
}

// findCallBefore returns the call that a result answers.
func (r *Repo) findCallBefore(ctx context.Context, result *commit.Commit, id string) (*commit.Commit, error) {
	for c, err := range commit.Walk(ctx, r.store, result.Parent(), 0) {
		if err == nil && c.Op == commit.Append && c.Kind == content.KindToolCall {
			err = commit.Load(ctx, r.store, c)
		}
		if err != nil {
			return nil, err
		}
		if call, ok := c.Block.(content.ToolCall); ok && call.CallID == id {
			return c, nil
		}
	}
	return nil, &refs.UnknownError{Rev: result.ID.Short(), Why: "its call " + id + " is not before it"}
}

// findResultAfter returns the result of a call on a history; nil when the history does not
// have the call, or has no result of it.
func (r *Repo) findResultAfter(ctx context.Context, tip objects.ID, call *commit.Commit, id string) (*commit.Commit, error) {
	on, err := r.isAncestor(ctx, call.ID, tip)
	if err != nil || !on {
		return nil, err
	}
	var first *commit.Commit
	for c, err := range commit.History(ctx, r.store, []objects.ID{tip}, []objects.ID{call.ID}) {
		if err == nil && c.Op == commit.Append && c.Kind == content.KindToolResult {
			err = commit.Load(ctx, r.store, c)
		}
		if err != nil {
			return nil, err
		}
		if b, ok := c.Block.(content.ToolResult); !ok || b.CallID != id {
			continue
		}
		after, err := r.isAncestor(ctx, call.ID, c.ID)
		if err != nil {
			return nil, err
		}
		if after {
			first = c
		}
	}
	return first, nil
}

// reasoningBefore returns the reasoning before a tool call in the same message.
func (r *Repo) reasoningBefore(ctx context.Context, call *commit.Commit) ([]*commit.Commit, error) {
	var list []*commit.Commit
	for c, err := range commit.Walk(ctx, r.store, call.Parent(), 0) {
		if err != nil {
			return nil, err
		}
		if c.Op != commit.Append {
			continue
		}
		if c.OriginID != call.OriginID || c.Role != call.Role || c.Index >= call.Index {
			break
		}
		if c.Kind == content.KindReasoning {
			list = append(list, c)
		}
	}
	slices.Reverse(list)
	return list, nil
}

// draftCopies returns drafts that repeat commits on a branch, with the copies as targets of
// edits and annotations. A copy has the origin of the original, so that the cost of a
// response is counted once.
func (b *Branch) draftCopies(ctx context.Context, c *callOptions, tip *commit.Commit, originals []*commit.Commit) ([]commit.Draft, error) {
	var drafts []commit.Draft
	copied := map[objects.ID]objects.ID{}
	last := tip
	for i, original := range originals {
		d := draftOf(original)
		d.Key = commit.Key{}
		switch {
		case original.Op == commit.Append:
			d.Index = 0
			if i > 0 && sameMessage(originals[i-1], original) {
				d.Index = drafts[i-1].Index + 1
			}
		case !copied[original.Target].IsZero():
			d.Target = copied[original.Target]
		default:
			if _, err := b.resolveTarget(ctx, tip, original.Target); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", original.Op, original.Target.Short(), err)
			}
		}
		commits, _, err := commit.Write(last, c.newMasker().Drafts([]commit.Draft{d})...) // for its id
		if err != nil {
			return nil, err
		}
		drafts, last, copied[original.ID] = append(drafts, d), commits[0], commits[0].ID
	}
	return drafts, nil
}

// sameMessage reports whether a block is part of the same message as one before it.
func sameMessage(before, next *commit.Commit) bool {
	return before.Op == commit.Append && next.Op == commit.Append && before.Role == next.Role && before.OriginID == next.OriginID && before.Index < next.Index
}
