package tract

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Resolve gives the commit that a revision names; see package refs for its
// words. One that names nothing is an [objects.ErrNotFound].
func (r *Repo) Resolve(ctx context.Context, rev string) (objects.ID, error) {
	return r.resolver().Resolve(ctx, rev)
}

// Refs lists the branches, or the tags. An error is the last element.
func (r *Repo) Refs(ctx context.Context, q RefQuery) iter.Seq2[RefInfo, error] {
	folder := refs.Heads
	if q.Tags {
		folder = refs.Tags
	}
	return func(yield func(RefInfo, error) bool) {
		list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: folder + q.Prefix, Limit: q.Limit, Newest: q.Newest})
		if err != nil {
			yield(RefInfo{}, fmt.Errorf("list %s: %w", folder, err))
			return
		}
		for _, ref := range list {
			info := RefInfo{Name: refs.Name(ref.Name), Tip: ref.Target, Version: ref.Version, Updated: ref.Updated}
			if q.Descriptions && !q.Tags {
				info.Description, err = r.Branch(info.Name).description(ctx)
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Show gives one commit with its block, where it came from, and its label. Of a
// damaged one it gives what can be read, and a *[commit.DamagedError].
func (r *Repo) Show(ctx context.Context, rev string) (*commit.Commit, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	if err := history.Load(ctx, r.store, c); err != nil {
		return c, fmt.Errorf("show: %w", err)
	}
	return c, nil
}

// Log yields the commits of a revision, newest first, as Show gives them. What a merge
// brought is among them. "A..B" is what B has and A has not. With the Tips of several
// histories it yields each commit once and before its parents, the deepest first. A
// *[commit.DamagedError] comes with its commit; any other error is the last element.
func (r *Repo) Log(ctx context.Context, rev string, o LogOptions) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		tips, without := o.Tips, []objects.ID(nil)
		if rev != "" {
			from, to, err := r.resolver().Range(ctx, rev)
			if err != nil {
				yield(nil, fmt.Errorf("log: %w", err))
				return
			}
			tips, without = append(slices.Clip(tips), to), []objects.ID{from}
		}
		for c, err := range r.history(ctx, tips, without, o.Limit) {
			if err != nil {
				err = fmt.Errorf("log: %w", err)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Compile builds the prompt of a revision: as it was when the revision was the
// tip, or at the time that Until names. The options and the settings of reasoning decide
// with it.
func (r *Repo) Compile(ctx context.Context, rev string, o CompileOptions) (*compile.Prompt, error) {
	c, err := r.compiling(o)
	if err != nil {
		return nil, err
	}
	return r.compile(ctx, rev, c)
}

func (r *Repo) compile(ctx context.Context, rev string, c *call) (*compile.Prompt, error) {
	id, err := r.Resolve(ctx, rev)
	if err == nil && !c.until.IsZero() {
		id, err = r.resolver().At(ctx, id, c.until)
	}
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return compile.Chain(ctx, r.store, id, c.compileOptions())
}

// Request returns the request that would ask a target from a revision, with its whole
// body: to look at. The empty revision is a history without commits. Calls that wait for a
// result are no hindrance.
func (r *Repo) Request(ctx context.Context, rev string, t llm.Target, o RequestOptions) (*llm.Request, error) {
	c, err := r.requesting(o, t)
	if err != nil {
		return nil, err
	}
	req := &llm.Request{Tools: c.tools, Settings: c.modelSettings(), Stream: o.Stream}
	if rev != "" {
		p, err := r.compile(ctx, rev, c)
		if err != nil {
			return nil, err
		}
		req.Messages = p.Messages
	}
	if len(o.UserMessage) > 0 {
		req.Messages = append(req.Messages, content.Message{Role: content.RoleUser, Blocks: c.masking().Blocks(o.UserMessage)})
	}
	if req.Body, err = t.Encode(req); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return req, nil
}

// Pending lists the tool calls at the end of the branch that wait for a result,
// so that a program can go on where it was stopped.
func (b *Branch) Pending(ctx context.Context) ([]content.ToolCall, error) {
	pending, err := b.pending(ctx)
	if err != nil {
		return nil, err
	}
	var calls []content.ToolCall
	for _, p := range pending {
		calls = append(calls, p.Call)
	}
	return calls, nil
}

// pending is Pending, with the commits. It compiles only where the last turn used tools.
func (b *Branch) pending(ctx context.Context) ([]compile.Pending, error) {
	tip, err := b.Tip(ctx)
	if err != nil || tip.IsZero() {
		return nil, err
	}
	if used, err := history.UsedTools(ctx, b.repo.store, tip); err != nil || !used {
		return nil, err
	}
	p, err := compile.Chain(ctx, b.repo.store, tip, compile.Options{})
	if err != nil {
		return nil, err
	}
	return p.Pending, nil
}
