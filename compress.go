package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// CompressOptions say what a summary stands for and who writes it: Client, or else the
// caller, in Text. Without both the error is [ErrEmpty], unless DryRun is set.
type CompressOptions struct {
	Covers commit.SummaryScope // what of the range the summary stands for
	Text   string              // the summary; not used with a Client
	Client llm.Client          // writes the summary
	Ask    AskOptions          // how Client is asked; Tools, Budget, Key, NoStream and OnEvent are not used
	DryRun bool                // find the range and write nothing
	Author string              // of the commit; empty: the author of the Repo
	Label  string              // a line for people, never sent
}

// Summary is a summary and the part of a history that it stands for.
type Summary struct {
	ID          objects.ID // of its commit; zero of a dry run
	First, Last objects.ID
	Widened     bool             // beyond what was asked, so that nothing is cut in the middle
	Commits     []*commit.Commit // what the summary leaves out of prompts, oldest first, with their blocks
	Tokens      int              // of Commits in the prompt, by estimate

	covers commit.SummaryScope
	tip    objects.ID
}

// Compress commits a summary that stands for a range in every prompt from here on. The
// originals stay on the history: [Branch.Expand] brings them back. The range A..B is what B
// has and A has not, a single revision all up to it, and the empty range all turns but the
// newest, as far as these take a quarter of the prompt. The commits that are pinned, of the
// system or left out stay as they are. The error for a range that cannot be compressed is a
// *[compile.RangeError]. A branch that was moved elsewhere meanwhile is a *[ConflictError].
//
// When a client writes the summary, the request and its manifest are kept like those of any
// response.
func (b *Branch) Compress(ctx context.Context, rng string, o CompressOptions) (*Summary, error) {
	c, err := b.repo.asking(o.Ask)
	if err != nil {
		return nil, err
	}
	c.by(o.Author)
	c.key, c.label.Text = commit.Key{}, o.Label
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if tip.IsZero() {
		return nil, b.errNoCommits("compress")
	}
	if o.Client == nil && !o.DryRun && strings.TrimSpace(o.Text) == "" {
		return nil, fmt.Errorf("compress: %w", ErrEmpty)
	}
	s, err := b.compressible(ctx, c, tip, rng, o.Covers)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if o.DryRun {
		return s, nil
	}
	text, origin := o.Text, (*commit.Origin)(nil)
	if o.Client != nil {
		var manifest []objects.Object
		text, origin, manifest, err = b.askSummary(ctx, c, o.Client, s)
		if err == nil {
			err = b.repo.store.Apply(ctx, objects.Batch{Put: manifest})
		}
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	}
	s.ID, err = b.compress(ctx, c, s, text, origin)
	return s, err
}

func (b *Branch) compressible(ctx context.Context, c *call, tip objects.ID, rng string, covers commit.SummaryScope) (*Summary, error) {
	o := compile.Options{Policy: c.compileOptions().Policy}
	if covers == commit.ScopeReasoning {
		o.Policy = priority.Policy{IncludeReasoning: true}
	}
	p, err := compile.Chain(ctx, b.repo.store, tip, o)
	if err != nil {
		return nil, err
	}
	first, last, err := b.ends(ctx, p, rng)
	if err != nil {
		return nil, err
	}
	p.Entries = slices.Clone(p.Entries) // prompts share theirs
	var tools []*compile.Entry          // that compiling had no need to read
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Kind == content.KindToolCall || e.Kind == content.KindToolResult {
			tools = append(tools, e)
		}
	}
	if err := compile.Load(ctx, b.repo.store, tools...); err != nil {
		return nil, err
	}
	from, to, err := p.SummaryRange(first, last, covers)
	if err != nil {
		return nil, err
	}
	r := &Summary{First: p.Entries[from].ID, Last: p.Entries[to].ID, covers: covers, tip: tip}
	r.Widened = from < p.IndexOf(first) || to > p.IndexOf(last)
	covered := p.SummaryMembers(from, to, covers)
	estimate := 0
	for _, e := range covered {
		estimate += int(e.Tokens)
	}
	r.Tokens = p.Scale.Tokens(estimate)
	r.Commits, err = b.repo.said(ctx, covered)
	return r, err
}

// said reads the commits whose words stand for some entries.
func (r *Repo) said(ctx context.Context, entries []*compile.Entry) ([]*commit.Commit, error) {
	ids := make([]objects.ID, len(entries))
	for i, e := range entries {
		if ids[i] = e.ID; !e.EditedBy().IsZero() {
			ids[i] = e.EditedBy()
		}
	}
	list, err := commit.ReadHeaders(ctx, r.store, ids)
	if err != nil {
		return nil, err
	}
	return list, commit.Load(ctx, r.store, list...)
}

// ends finds the first and the last commit that a range names.
func (b *Branch) ends(ctx context.Context, p *compile.Prompt, rng string) (first, last objects.ID, err error) {
	if rng == "" {
		first, last = p.OldTurns()
		if last.IsZero() {
			err = &compile.RangeError{Why: "there is no turn before the newest"}
		}
		return first, last, err
	}
	from, to, err := b.resolver().Range(ctx, rng)
	if err != nil {
		return first, last, err
	}
	if from == to {
		return first, last, &compile.RangeError{Why: fmt.Sprintf("the range %s is empty", rng)}
	}
	after := from.IsZero()
	for _, e := range p.Entries {
		if after && first.IsZero() {
			first = e.ID
		}
		after = after || e.ID == from
		if e.ID == to {
			last = to
		}
	}
	if first.IsZero() || last.IsZero() {
		err = &refs.UnknownError{Rev: rng, Why: "it is no range of branch " + b.name}
	}
	return first, last, err
}

// compress commits the summary of a range; origin is of the model that wrote it,
// nil when a person did. What was added meanwhile does not matter: the range is
// where it was.
func (b *Branch) compress(ctx context.Context, c *call, r *Summary, text string, origin *commit.Origin) (objects.ID, error) {
	ids, err := b.write(ctx, c, "compress", func(tip *commit.Commit) ([]commit.Draft, error) {
		if err := b.grewFrom(ctx, r.tip, tip); err != nil {
			return nil, err
		}
		d := b.draft(c, commit.Compress, r.Last)
		d.First, d.Scope, d.Priority, d.Block = r.First, r.covers, c.priority, content.Text{Of: content.KindSummary, Text: text}
		if origin != nil {
			d.Origin = origin
		}
		return []commit.Draft{d}, nil
	})
	if err != nil {
		return objects.ID{}, err
	}
	return ids[0], nil
}

// grewFrom says when a tip is not one that was reached from another by adding.
func (b *Branch) grewFrom(ctx context.Context, from objects.ID, tip *commit.Commit) error {
	moved := &ConflictError{Operation: "compress", Branch: b.name, Expected: from}
	if tip == nil {
		return moved
	}
	moved.Actual = tip.ID
	base, err := commit.MergeBase(ctx, b.repo.store, tip.ID, from)
	if err == nil && base != from {
		err = moved
	}
	return err
}

// SummaryInstruction is what a model is told that writes a summary.
const SummaryInstruction = "You keep the memory of a conversation between a user and an assistant that uses tools. " +
	"Write down what the assistant needs in order to go on without the original: what the user wants and decided, facts, names, numbers " +
	"and identifiers exactly as they are, what was tried and how it ended, and what is still open. Leave out small talk and what was " +
	"superseded. Write plain text, as short as that allows, and nothing about this task."

// askSummary lets a model sum up a range. put is the manifest of the request.
func (b *Branch) askSummary(ctx context.Context, c *call, client llm.Client, r *Summary) (text string, origin *commit.Origin, put []objects.Object, err error) {
	if len(r.Commits) > compile.MaxSources {
		return "", nil, nil, &compile.RangeError{Why: fmt.Sprintf("a model is shown at most %d commits at once, and the range has %d", compile.MaxSources, len(r.Commits))}
	}
	// The question is a short history of its own, which no branch has: the
	// manifest links to it.
	drafts := c.drafts(b.name, nil, []content.Block{content.System(SummaryInstruction), content.User(r.transcript())})
	for i := range drafts {
		drafts[i].Priority, drafts[i].Key, drafts[i].Label = priority.Unset, commit.Key{}, commit.Label{}
	}
	question, put, err := c.commits(nil, drafts...)
	if err == nil {
		err = b.repo.store.Apply(ctx, objects.Batch{Put: put})
	}
	if err != nil {
		return "", nil, nil, err
	}
	target, _ := client.(llm.Target)
	asked := *c
	asked.target, asked.tools, asked.plain, asked.budget = target, nil, true, 0
	x := &Exchange{Target: target, call: &asked, tip: question[len(question)-1].ID, started: b.repo.clock()}
	if err := b.fill(ctx, x, false); err != nil {
		return "", nil, nil, err
	}
	for _, c := range r.shown() {
		x.Manifest.Sources = append(x.Manifest.Sources, c.ID)
	}
	x.Request.OnSent = func(body []byte) { x.sent = body }
	x.Request.OnWarning = func(p llm.Problem) { x.warn(Problem{Problem: p}) }
	reply, err := known(client.Generate(llm.SkipRecording(ctx), x.Request))
	x.replied(reply)
	if err == nil && (reply == nil || strings.TrimSpace(reply.Text()) == "") {
		err = errors.New("the model wrote no summary")
	}
	if err == nil && reply.Incomplete {
		err = llm.ErrTruncated
	}
	if err != nil {
		return "", nil, nil, err
	}
	origin = b.replyOrigin(x, reply, false)
	manifest := x.finish(reply)
	origin.Manifest = manifest.ID
	return strings.TrimSpace(reply.Text()), origin, []objects.Object{manifest}, nil
}

// shown returns the commits of a range that still have content: a model is shown these.
func (r *Summary) shown() []*commit.Commit {
	return slices.DeleteFunc(slices.Clone(r.Commits), func(c *commit.Commit) bool { return c.Tombstone != nil })
}

// transcript is the content of a range, for a model to read.
func (r *Summary) transcript() string {
	var b strings.Builder
	for _, c := range r.shown() {
		switch said := c.Block.(type) {
		case content.ToolCall:
			fmt.Fprintf(&b, "[tool call %s %s]\n%s\n\n", said.Name, said.CallID, said.Arguments)
		case content.ToolResult:
			fmt.Fprintf(&b, "[tool result %s]\n%s\n\n", said.CallID, said.String())
		default:
			fmt.Fprintf(&b, "[%s]\n%s\n\n", c.Kind, c.Block.String())
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Expand takes a summary out of prompts from here on, and brings back what it
// stands for: an annotation whose id is returned. The revision may be the summary
// or a commit that it stands for.
func (b *Branch) Expand(ctx context.Context, rev string) (objects.ID, error) {
	id, err := b.resolver().Resolve(ctx, rev)
	if err != nil {
		return objects.ID{}, fmt.Errorf("expand: %w", err)
	}
	c, err := b.repo.header(ctx, id)
	if err != nil {
		return objects.ID{}, fmt.Errorf("expand: %w", err)
	}
	if c.Op != commit.Compress {
		tip, err := b.Tip(ctx)
		if err != nil {
			return objects.ID{}, err
		}
		entries, err := compile.Decisions(ctx, b.repo.store, tip, compile.Options{Policy: priority.Policy{IncludeReasoning: true}})
		if err != nil {
			return objects.ID{}, fmt.Errorf("expand: %w", err)
		}
		id = objects.ID{}
		for _, e := range entries {
			if e.ID == c.ID {
				id = e.SummarizedBy()
			}
		}
		if id.IsZero() {
			return objects.ID{}, fmt.Errorf("expand: %w", &refs.UnknownError{Rev: rev, Why: "no summary stands for it"})
		}
	}
	return b.annotate(ctx, "expand", id.String(), priority.Skip, "expanded")
}
