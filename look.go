package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"github.com/tract-vcs/tract/refs"
)

// Resolve gives the commit that a revision names; see package refs for its
// words. One that names nothing is an [objects.ErrNotFound].
func (r *Repo) Resolve(ctx context.Context, rev string) (objects.ID, error) {
	return r.resolver().Resolve(ctx, rev)
}

// Branches lists the branches.
func (r *Repo) Branches(ctx context.Context, q refs.Query) iter.Seq2[refs.Info, error] {
	return r.infos(ctx, refs.Heads, q)
}

// infos lists the refs of a folder.
func (r *Repo) infos(ctx context.Context, folder string, q refs.Query) iter.Seq2[refs.Info, error] {
	return func(yield func(refs.Info, error) bool) {
		list, err := r.store.Refs(ctx, objects.RefQuery{Prefix: folder + q.Prefix, Limit: q.Limit, Newest: q.Newest})
		if err != nil {
			yield(refs.Info{}, fmt.Errorf("list %s: %w", folder, err))
			return
		}
		for _, ref := range list {
			if !yield(refs.Info{Name: refs.Name(ref.Name), Tip: ref.Target, Version: ref.Version, Updated: ref.Updated}, nil) {
				return
			}
		}
	}
}

// Show gives one commit with its block, where it came from, and its label. Of a
// damaged one it gives what can be read, and a *[DamagedError].
func (r *Repo) Show(ctx context.Context, rev string) (*commit.Commit, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return nil, fmt.Errorf("show: %w", err)
	}
	if err := r.loadAlone(ctx, c); err != nil {
		return c, fmt.Errorf("show: %w", err)
	}
	return c, nil
}

// A log reads so many commits at once, and at first unless it is known how many are
// wanted.
const (
	logPage   = 128
	firstPage = 16
)

// Log yields the commits of a revision, newest first, as Show gives them: all
// of them, or as many as [Limit] says. What a merge brought is among them. "A..B"
// is what B has and A has not. A *[DamagedError] comes with its commit; any other
// error is the last element.
func (r *Repo) Log(ctx context.Context, rev string, opts ...Option) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		c, err := r.call(opts)
		if err != nil {
			yield(nil, err)
			return
		}
		from, to, err := r.resolver().Range(ctx, rev)
		if err != nil {
			yield(nil, fmt.Errorf("log: %w", err))
			return
		}
		r.logged(ctx, []objects.ID{to}, []objects.ID{from}, c)(yield)
	}
}

// loaded fills in what commits link to, a page at a time. The first pages are
// small: the first commits are there at once, and who wants only some waits for
// not many more.
func (r *Repo) loaded(ctx context.Context, commits iter.Seq2[*commit.Commit, error], first int) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		size := min(cmp.Or(first, firstPage), logPage)
		page := make([]*commit.Commit, 0, size)
		flush := func() bool {
			more := r.yieldLoaded(ctx, page, yield)
			page, size = page[:0], min(2*size, logPage)
			return more
		}
		for c, err := range commits {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			if page = append(page, c); len(page) == size && !flush() {
				return
			}
		}
		flush()
	}
}

// Notes lists the annotations and edits that a history has of one commit, oldest
// first, as Show gives them; with a *[DamagedError] when one is damaged.
func (r *Repo) Notes(ctx context.Context, tip, id objects.ID) ([]*commit.Commit, error) {
	var notes []*commit.Commit
	merged := false
	for c, err := range commit.Walk(ctx, r.store, tip, 0, id) {
		apart := errors.As(err, new(*objects.DivergedError))
		if err != nil && !apart {
			return nil, fmt.Errorf("notes of %s: %w", id.Short(), err)
		}
		if apart {
			return nil, nil
		}
		if merged = c.Op == commit.Merge; merged {
			break
		}
		if c.Target == id {
			notes = append(notes, c)
		}
	}
	slices.Reverse(notes)
	if merged {
		line, err := commit.Line(ctx, r.store, tip)
		if err != nil {
			return nil, fmt.Errorf("notes of %s: %w", id.Short(), err)
		}
		notes = slices.DeleteFunc(line, func(c *commit.Commit) bool { return c.Target != id })
	}
	damaged, err := r.loadEach(ctx, notes)
	return notes, firstDamage(err, damaged...)
}

// Compile builds the prompt of a revision: as it was when the revision was the
// tip, or at the time that [Until] names. [IncludeReasoning], [Budget], [For]
// and the settings of reasoning decide with it.
func (r *Repo) Compile(ctx context.Context, rev string, opts ...Option) (*compile.Prompt, error) {
	c, err := r.call(opts)
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

// Diff compares the prompts of two revisions.
func (r *Repo) Diff(ctx context.Context, a, b string, opts ...Option) (*diff.Diff, error) {
	var before, after *compile.Prompt
	var errBefore, errAfter error
	var both sync.WaitGroup
	both.Go(func() { before, errBefore = r.Compile(ctx, a, opts...) })
	after, errAfter = r.Compile(ctx, b, opts...)
	both.Wait()
	if errBefore != nil {
		return nil, errBefore
	}
	if errAfter != nil {
		return nil, errAfter
	}
	return diff.Prompts(before, after), nil
}

// Saw gives the prompt that a reply was given to, as its manifest has it. The
// revision may be any commit of the reply.
func (r *Repo) Saw(ctx context.Context, rev string) (*compile.Prompt, error) {
	c, err := r.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	if c.From == nil || c.From.Manifest.IsZero() {
		return nil, fmt.Errorf("prompt of %s: %w", c.ID.Short(), noReply(rev))
	}
	m, err := compile.ReadManifest(ctx, r.store, c.From.Manifest)
	if err != nil {
		return nil, fmt.Errorf("prompt of %s: %w", c.ID.Short(), err)
	}
	return compile.Chain(ctx, r.store, m.Head, m.Options)
}

// Request gives the request that would ask a target from a revision, with its
// whole body: for looking at. The empty revision is a history without commits.
// Calls that wait for a result are no hindrance.
func (r *Repo) Request(ctx context.Context, rev string, t llm.Target, opts ...Option) (*llm.Request, error) {
	c, err := r.call(append(opts[:len(opts):len(opts)], For(t)))
	if err != nil {
		return nil, err
	}
	req := &llm.Request{Tools: c.tools, Settings: c.modelSettings(), Stream: c.stream != nil && *c.stream}
	if rev != "" {
		p, err := r.compile(ctx, rev, c)
		if err != nil {
			return nil, err
		}
		req.Messages = p.Messages
	}
	if len(c.also) > 0 {
		req.Messages = append(req.Messages, content.Message{Role: content.RoleUser, Blocks: c.masking().blocks(c.also)})
	}
	if req.Body, err = t.Encode(req); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return req, nil
}

// compileOptions is what decides on a prompt, for compile and for generate.
func (c *call) compileOptions() compile.Options {
	o := compile.Options{
		Policy: priority.Policy{Strip: c.settings.Strip(), IncludeReasoning: c.include || c.settings.IncludeReasoning()},
		Budget: c.budget,
	}
	if c.target != nil {
		o.DropOpen = !c.target.WantsTurn()
	}
	if k, ok := c.target.(llm.ReasoningKeeper); ok {
		o.KeepToolTurns = k.KeepsToolTurns(c.modelSettings())
	}
	return o
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
	if used, err := b.repo.usedTools(ctx, tip); err != nil || !used {
		return nil, err
	}
	p, err := compile.Chain(ctx, b.repo.store, tip, compile.Options{})
	if err != nil {
		return nil, err
	}
	return p.Pending, nil
}
