package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// CherryPick commits blocks of other histories again on the branch, in one
// transaction, and returns the new commits. A revision may be a range A..B. A tool
// call takes its result and its reasoning along, a result its call. An edit or an
// annotation is made anew of the block it speaks of, or of that block's copy.
func (b *Branch) CherryPick(ctx context.Context, revs []string) ([]objects.ID, error) {
	c := b.repo.call()
	p := &picking{repo: b.repo, has: map[objects.ID]bool{}}
	for _, rev := range revs {
		if err := p.rev(ctx, b, rev); err != nil {
			return nil, fmt.Errorf("cherry-pick %s: %w", rev, err)
		}
	}
	if err := commit.LoadAll(ctx, b.repo.store, p.list...); err != nil {
		return nil, fmt.Errorf("cherry-pick: %w", err)
	}
	return b.write(ctx, c, "cherry-pick", func(tip *commit.Commit) ([]commit.Draft, error) {
		return b.copies(ctx, c, tip, p.list)
	})
}

// picking gathers the commits that are to be copied.
type picking struct {
	repo *Repo
	list []*commit.Commit
	has  map[objects.ID]bool
}

func (p *picking) put(list ...*commit.Commit) {
	for _, c := range list {
		if !p.has[c.ID] {
			p.has[c.ID], p.list = true, append(p.list, c)
		}
	}
}

func (p *picking) rev(ctx context.Context, b *Branch, rev string) error {
	from, to, err := b.resolver().Range(ctx, rev)
	if err != nil {
		return err
	}
	if !from.IsZero() {
		list, err := commit.IncomingCommits(ctx, p.repo.store, from, to)
		for _, c := range list {
			if err == nil && c.Op != commit.Merge && c.Op != commit.Compress {
				err = p.one(ctx, c)
			}
		}
		return err
	}
	c, err := p.repo.header(ctx, to)
	if err != nil {
		return err
	}
	if c.Op == commit.Compress {
		return &refs.UnknownError{Rev: rev, Why: "it is a summary of what lies before it; tract compress makes one here"}
	}
	if c.Op == commit.Merge {
		return &refs.UnknownError{Rev: rev, Why: "it is a merge; name the commits that it brought, such as " + c.Parents[0].Short() + ".." + c.Parents[1].Short()}
	}
	return p.one(ctx, c)
}

func (p *picking) one(ctx context.Context, c *commit.Commit) error {
	if c.Op != commit.Append || c.Kind != content.KindToolCall && c.Kind != content.KindToolResult {
		p.put(c)
		return nil
	}
	call, result, err := p.repo.pair(ctx, c)
	if err != nil {
		return err
	}
	thoughts, err := p.repo.thoughts(ctx, call)
	if err != nil {
		return err
	}
	p.put(thoughts...)
	p.put(call)
	if result != nil {
		p.put(result)
	}
	return nil
}

// pair finds the call and the result that belong together; a call that the provider
// ran may have no result of its own.
func (r *Repo) pair(ctx context.Context, c *commit.Commit) (call, result *commit.Commit, err error) {
	if err := commit.Load(ctx, r.store, c); err != nil {
		return nil, nil, err
	}
	if b, ok := c.Block.(content.ToolResult); ok {
		call, err = r.callBefore(ctx, c, b.CallID)
		return call, c, err
	}
	b := c.Block.(content.ToolCall)
	branches, err := r.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads, Newest: true})
	if err != nil {
		return nil, nil, err
	}
	for _, branch := range branches {
		result, err := r.resultAfter(ctx, branch.Target, c, b.CallID)
		if err != nil || result != nil {
			return c, result, err
		}
	}
	if b.Server {
		return c, nil, nil
	}
	return nil, nil, &ToolLoopError{Operation: "the call cannot be copied alone", Where: c.ID.Short(), Calls: []string{b.CallID}}
}

func (r *Repo) callBefore(ctx context.Context, result *commit.Commit, id string) (*commit.Commit, error) {
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

// resultAfter finds the result of a call on a history; nil when the call is not on
// it or has none there.
func (r *Repo) resultAfter(ctx context.Context, tip objects.ID, call *commit.Commit, id string) (*commit.Commit, error) {
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

// thoughts is the reasoning before a call in the message that it is part of.
func (r *Repo) thoughts(ctx context.Context, call *commit.Commit) ([]*commit.Commit, error) {
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

// copies is drafts of commits for a branch, with its own copies for the targets of
// edits and annotations. An origin is shared with the original, so that what a
// reply cost is counted once.
func (b *Branch) copies(ctx context.Context, c *call, tip *commit.Commit, list []*commit.Commit) ([]commit.Draft, error) {
	var drafts []commit.Draft
	copied := map[objects.ID]objects.ID{}
	last := tip
	for i, original := range list {
		d := again([]*commit.Commit{original})[0]
		d.Key = commit.Key{}
		switch {
		case original.Op == commit.Append:
			d.Index = 0
			if i > 0 && goesOn(list[i-1], original) {
				d.Index = drafts[i-1].Index + 1
			}
		case !copied[original.Target].IsZero():
			d.Target = copied[original.Target]
		default:
			if _, err := b.target(ctx, tip, original.Target); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", original.Op, original.Target.Short(), err)
			}
		}
		commits, _, err := commit.Write(last, c.masking().Drafts([]commit.Draft{d})...) // for its id
		if err != nil {
			return nil, err
		}
		drafts, last, copied[original.ID] = append(drafts, d), commits[0], commits[0].ID
	}
	return drafts, nil
}

// goesOn tells whether a block was said in the same message as one before it.
func goesOn(before, c *commit.Commit) bool {
	return before.Op == commit.Append && c.Op == commit.Append && before.Role == c.Role && before.OriginID == c.OriginID && before.Index < c.Index
}

// flat is drafts of the blocks that a merge brings, as they read there: with their
// last words and priorities.
func (r *Repo) flat(ctx context.Context, m *MergeResult) ([]commit.Draft, error) {
	entries, err := compile.Decisions(ctx, r.store, m.Theirs, compile.Options{})
	if err != nil {
		return nil, err
	}
	at := map[objects.ID]*compile.Entry{}
	for i := range entries {
		at[entries[i].ID] = &entries[i]
	}
	last, _ := history.LatestChanges(m.Incoming)
	var drafts []commit.Draft
	var before *commit.Commit
	for _, c := range m.Incoming {
		if c.Op != commit.Append && c.Op != commit.Compress {
			continue
		}
		d := again([]*commit.Commit{c})[0]
		d.Op, d.Key, d.Index, d.Target, d.First, d.Scope = commit.Append, commit.Key{}, 0, objects.ID{}, objects.ID{}, commit.ScopeAll
		if before != nil && goesOn(before, c) {
			d.Index = drafts[len(drafts)-1].Index + 1
		}
		if edit := last[history.ChangeKey{Target: c.ID, Op: commit.Edit}]; edit != nil {
			sameWords(&d, edit)
		}
		if note := last[history.ChangeKey{Target: c.ID, Op: commit.Annotate}]; note != nil {
			d.Priority = note.Priority
		}
		if e := at[c.ID]; e != nil && !e.SummarizedBy().IsZero() && !e.Sent && e.Level != priority.Skip && c.Role != content.NoRole {
			d.Priority = priority.Skip // a summary stands for it
		}
		drafts, before = append(drafts, d), c
	}
	return drafts, nil
}
