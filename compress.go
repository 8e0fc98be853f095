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

// CompressOptions are the options of [Branch.Compress]. The summary is written by Client,
// or given in Text. Without both the error is [ErrEmpty], unless DryRun is set.
type CompressOptions struct {
	Covers commit.SummaryScope // the part of the range that the summary stands for
	Text   string              // the summary; not used with a Client
	Client llm.Client          // writes the summary
	Ask    AskOptions          // how Client is asked; Tools, Budget, Key, NoStream and OnEvent are not used
	DryRun bool                // find the range and write nothing
	Author string              // of the commit; empty: the author of the Repo
	Label  string              // a line for people, never sent
}

// Summary is a summary and the range that it stands for.
type Summary struct {
	ID          objects.ID // of its commit; zero of a dry run
	First, Last objects.ID
	Widened     bool             // the range is larger than requested, so that no message and no tool call is cut
	Commits     []*commit.Commit // what the summary leaves out of prompts, oldest first, with their blocks
	Tokens      int              // of Commits in the prompt, by estimate

	covers commit.SummaryScope
	tip    objects.ID
}

// Compress commits a summary that stands for a range in every prompt from here on. The
// originals stay on the history: [Branch.Expand] brings them back into prompts. The range
// A..B is what B has and A does not have, a single revision is everything up to it, and the
// empty range is all turns but the last one and those before it that make up a quarter of
// the prompt with it. Pinned commits, system blocks, and commits that are left out stay as
// they are. The error for a range that cannot be compressed is a *[compile.RangeError].
// When the branch was moved elsewhere meanwhile, it is a *[ConflictError].
//
// When a client writes the summary, the request and its manifest are kept like those of any
// response.
func (b *Branch) Compress(ctx context.Context, rng string, o CompressOptions) (*Summary, error) {
	c, err := b.repo.resolveAsk(o.Ask)
	if err != nil {
		return nil, err
	}
	c.setAuthor(o.Author)
	c.key, c.label.Text = commit.Key{}, o.Label
	tip, err := b.requireTip(ctx, "compress")
	if err != nil {
		return nil, err
	}
	if o.Client == nil && !o.DryRun && strings.TrimSpace(o.Text) == "" {
		return nil, fmt.Errorf("compress: %w", ErrEmpty)
	}
	s, err := b.findWidenedRange(ctx, c, tip, rng, o.Covers)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if o.DryRun {
		return s, nil
	}
	text, origin := o.Text, (*commit.Origin)(nil)
	if o.Client != nil {
		var manifest []objects.Object
		text, origin, manifest, err = b.storeQuestionAndGenerateSummary(ctx, c, o.Client, s)
		if err == nil {
			err = b.repo.store.Apply(ctx, objects.Batch{Put: manifest})
		}
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	}
	s.ID, err = b.commitSummary(ctx, c, s, text, origin)
	return s, err
}

// findWidenedRange finds the range to compress, widened so that it cuts no message and no tool
// call from its result.
func (b *Branch) findWidenedRange(ctx context.Context, c *callOptions, tip objects.ID, rng string, covers commit.SummaryScope) (*Summary, error) {
	o := compile.Options{Policy: c.compilerOptions().Policy}
	if covers == commit.ScopeReasoning {
		o.Policy = priority.Policy{IncludeReasoning: true}
	}
	p, err := compile.Chain(ctx, b.repo.store, tip, o)
	if err != nil {
		return nil, err
	}
	first, last, err := b.firstAndLastInRange(ctx, p, rng)
	if err != nil {
		return nil, err
	}
	p.Entries = slices.Clone(p.Entries) // prompts share their entries
	var tools []*compile.Entry          // compiling does not load their content
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
	r.Commits, err = b.repo.loadCommitsInForce(ctx, covered)
	return r, err
}

// loadCommitsInForce returns the commits of entries, loaded: for an edited entry the commit of its
// edit.
func (r *Repo) loadCommitsInForce(ctx context.Context, entries []*compile.Entry) ([]*commit.Commit, error) {
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

// firstAndLastInRange returns the first and the last commit of the range a..b, in which a is not
// included. An empty rng means all turns before the newest.
func (b *Branch) firstAndLastInRange(ctx context.Context, p *compile.Prompt, rng string) (first, last objects.ID, err error) {
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
		err = &refs.UnknownError{Rev: rng, Why: "it is not a range of branch " + b.name}
	}
	return first, last, err
}

// commitSummary commits the summary of a range. origin describes the model that wrote it;
// nil when a person did. Commits that were appended meanwhile are no conflict.
func (b *Branch) commitSummary(ctx context.Context, c *callOptions, r *Summary, text string, origin *commit.Origin) (objects.ID, error) {
	return onlyID(b.write(ctx, c, "compress", func(tip *commit.Commit) ([]commit.Draft, error) {
		if err := b.requireDescendant(ctx, r.tip, tip); err != nil {
			return nil, err
		}
		d := b.newChangeDraft(c, commit.Compress, r.Last)
		d.First, d.Scope, d.Priority, d.Block = r.First, r.covers, c.priority, content.Text{Of: content.KindSummary, Text: text}
		if origin != nil {
			d.Origin = origin
		}
		return []commit.Draft{d}, nil
	}))
}

// requireDescendant returns a *[ConflictError] unless a tip descends from another commit.
func (b *Branch) requireDescendant(ctx context.Context, ancestor objects.ID, tip *commit.Commit) error {
	moved := &ConflictError{Operation: "compress", Branch: b.name, Expected: ancestor}
	if tip == nil {
		return moved
	}
	moved.Actual = tip.ID
	base, err := commit.MergeBase(ctx, b.repo.store, tip.ID, ancestor)
	if err == nil && base != ancestor {
		err = moved
	}
	return err
}

// SummaryInstruction is the system block for a model that writes a summary.
const SummaryInstruction = "You keep the memory of a conversation between a user and an assistant that uses tools. " +
	"Write down what the assistant needs in order to go on without the original: what the user wants and decided, facts, names, numbers " +
	"and identifiers exactly as they are, what was tried and how it ended, and what is still open. Leave out small talk and what was " +
	"superseded. Write plain text, as short as that allows, and nothing about this task."

// storeQuestionAndGenerateSummary asks a model for the summary of a range. The request is a short
// history of its own, which is on no branch and is written to the store. manifests holds the manifest
// that links to it, which the caller has to write.
func (b *Branch) storeQuestionAndGenerateSummary(ctx context.Context, c *callOptions, client llm.Client, r *Summary) (text string, origin *commit.Origin, manifests []objects.Object, err error) {
	if len(r.Commits) > compile.MaxSources {
		return "", nil, nil, &compile.RangeError{Why: fmt.Sprintf("a model is shown at most %d commits at once, and the range has %d", compile.MaxSources, len(r.Commits))}
	}

	drafts := c.newDrafts(nil, []content.Block{content.System(SummaryInstruction), content.User(r.transcript())}, &originsBySource{base: commit.Origin{Session: b.name}}, c.explicitOrUsualRole)
	for i := range drafts {
		drafts[i].Priority, drafts[i].Key, drafts[i].Label = priority.Unset, commit.Key{}, commit.Label{}
	}
	question, put, err := c.maskAndBuild(nil, drafts...)
	if err == nil {
		err = b.repo.store.Apply(ctx, objects.Batch{Put: put})
	}
	if err != nil {
		return "", nil, nil, err
	}
	target, _ := client.(llm.Target)
	asked := *c
	asked.target, asked.tools, asked.noTools, asked.budget = target, nil, true, 0
	x := &Exchange{Target: target, options: &asked, tip: question[len(question)-1].ID, started: b.repo.clock()}
	if err := b.buildRequest(ctx, x, false); err != nil {
		return "", nil, nil, err
	}
	for _, c := range r.withoutPurged() {
		x.Manifest.Sources = append(x.Manifest.Sources, c.ID)
	}
	x.Request.OnSent = func(body []byte) { x.sentBody = body }
	x.Request.OnWarning = func(p llm.Problem) { x.addWarning(Problem{Problem: p}) }
	reply, err := dropInvalidBlocks(client.Generate(llm.SkipRecording(ctx), x.Request))
	x.callOnResponse(reply)
	if err == nil && (reply == nil || strings.TrimSpace(reply.Text()) == "") {
		err = errors.New("the model wrote no summary")
	}
	if err == nil && reply.Incomplete {
		err = llm.ErrTruncated
	}
	if err != nil {
		return "", nil, nil, err
	}
	origin = b.responseOrigin(x, reply, false)
	manifest := x.finishManifest(reply.Sent)
	origin.Manifest = manifest.ID
	return strings.TrimSpace(reply.Text()), origin, []objects.Object{manifest}, nil
}

// withoutPurged returns the commits of a range that still have content; the model that
// writes the summary is shown these.
func (r *Summary) withoutPurged() []*commit.Commit {
	return slices.DeleteFunc(slices.Clone(r.Commits), func(c *commit.Commit) bool { return c.Tombstone != nil })
}

// transcript returns the content of a range as text for a model.
func (r *Summary) transcript() string {
	var b strings.Builder
	for _, c := range r.withoutPurged() {
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

// Expand leaves a summary out of prompts from here on, so that the commits it stands for are
// sent again. It commits an annotation and returns its id. The revision names the summary or
// a commit that it stands for.
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
