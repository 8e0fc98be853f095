package tract

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// MergeOptions are the options of [Branch.Merge]. The zero value moves the branch forward
// where that is enough, and otherwise appends the blocks of the other history after ours.
type MergeOptions struct {
	FastForwardOnly bool       // refuse what needs a merge commit: [ErrNotFastForward]
	NoFastForward   bool       // make a merge commit although moving forward is enough
	AllowUnrelated  bool       // allow histories that share no commit
	Squash          bool       // commit copies of the incoming blocks and of their last edits, without a second parent
	NoMove          bool       // write the commits and do not move the branch: MergeResult.Tip is where it would be
	DryRun          bool       // write nothing
	Summary         string     // text of a summary that stands for the incoming blocks in the prompt
	Summarize       llm.Client // writes such a summary
	Ask             AskOptions // how Summarize is asked; Tools, Budget, Key, NoStream and OnEvent are not used
	Author          string     // of the commits; empty: the author of the Repo
	Label           string     // on the merge: a line for people, never sent

	// Resolve resolves a conflict: it returns c.Ours, c.Theirs, or a change with a Text of
	// its own. Without Resolve, and when it returns nil, the conflict stays.
	Resolve func(c Conflict) (*Change, error)
}

// MergeKind is the outcome of a merge.
type MergeKind string

// The kinds of merges.
const (
	UpToDate    MergeKind = "up-to-date"   // the branch has everything already
	FastForward MergeKind = "fast-forward" // the branch moved, and nothing was committed
	Merged      MergeKind = "merge"        // a commit with two parents
	Squashed    MergeKind = "squash"       // copies
)

// MergeResult is what a merge did, or would do.
type MergeResult struct {
	Kind      MergeKind
	Base      objects.ID // the merge base; zero: none
	Ours      objects.ID // the branch as it was; zero: without commits
	Theirs    objects.ID
	Tip       objects.ID       // the branch as it is, or would be; zero for a dry run that would commit
	Incoming  []*commit.Commit // the commits that theirs has and ours does not have, as Show returns them, oldest first
	Commits   []objects.ID     // that were made
	Conflicts []Conflict       // that were resolved
}

// ErrNotFastForward is the error for a merge that is not possible as a fast-forward: both
// histories have commits of their own.
var ErrNotFastForward = errors.New("both have commits of their own")

// ErrUnrelated is the error for two histories that share no commit.
var ErrUnrelated = errors.New("the histories share no commit")

// ToolLoopError is the error for a merge while tool calls wait for results or the model has not answered
// the last result, and for a cherry-pick of a call that has no result.
type ToolLoopError struct {
	Operation string
	Where     string   // a branch or a revision
	Calls     []string // the calls that wait for a result; none: the model has not answered the last result
}

// Error names the calls.
func (e *ToolLoopError) Error() string {
	if len(e.Calls) == 0 {
		return fmt.Sprintf("%s: %s is inside a tool loop: the model has not answered the last tool result", e.Operation, e.Where)
	}
	return fmt.Sprintf("%s: %s is inside a tool loop: tool calls wait for a result: %s", e.Operation, e.Where, strings.Join(e.Calls, ", "))
}

// Merge merges another history into the branch. A commit that both histories have edited, or
// annotated, differently is a conflict; conflicts that o.Resolve does not resolve are a
// *[MergeConflictError]. When the branch moves meanwhile, the error is a *[ConflictError].
func (b *Branch) Merge(ctx context.Context, rev string, o MergeOptions) (*MergeResult, error) {
	c, err := b.repo.resolveAsk(o.Ask)
	if err != nil {
		return nil, err
	}
	c.setAuthor(o.Author)
	c.key, c.label.Text = commit.Key{}, o.Label
	r := &MergeResult{}
	if r.Ours, err = b.Tip(ctx); err != nil {
		return nil, err
	}
	if r.Theirs, err = b.resolver().Resolve(ctx, rev); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	if err := b.merge(ctx, c, o, r, rev); err != nil {
		if errors.As(err, new(*objects.ConflictError)) {
			return nil, b.wrapStoreError("merge", err)
		}
		return nil, fmt.Errorf("merge %s into branch %s: %w", rev, b.name, err)
	}
	return r, nil
}

// merge chooses the kind of the merge and performs it.
func (b *Branch) merge(ctx context.Context, c *callOptions, m MergeOptions, r *MergeResult, rev string) (err error) {
	store := b.repo.store
	if r.Ours.IsZero() {
		if r.Incoming, err = commit.Linearize(ctx, store, r.Theirs); err != nil {
			return err
		}
	} else {
		if r.Base, err = commit.MergeBase(ctx, store, r.Ours, r.Theirs); err != nil {
			return err
		}
		if r.Incoming, err = commit.IncomingCommits(ctx, store, r.Ours, r.Theirs); err != nil {
			return err
		}
	}
	forward := r.Base == r.Ours
	switch {
	case r.Base == r.Theirs:
		r.Kind, r.Tip = UpToDate, r.Ours
		return nil
	case forward && (r.Ours.IsZero() || !m.NoFastForward && !m.Squash && m.Summary == "" && m.Summarize == nil):
		return b.fastForward(ctx, c, m, r)
	case m.FastForwardOnly:
		return ErrNotFastForward
	case r.Base.IsZero() && !m.AllowUnrelated:
		return ErrUnrelated
	}
	if err := b.repo.requireOutsideToolLoop(ctx, "branch "+b.name, r.Ours); err != nil {
		return err
	}
	if err := b.repo.requireOutsideToolLoop(ctx, rev, r.Theirs); err != nil {
		return err
	}
	return b.joinHistories(ctx, c, m, r)
}

// fastForward moves the branch to the other history.
func (b *Branch) fastForward(ctx context.Context, c *callOptions, m MergeOptions, r *MergeResult) error {
	r.Kind, r.Tip = FastForward, r.Theirs
	if err := commit.LoadAll(ctx, b.repo.store, r.Incoming...); err != nil || m.DryRun || m.NoMove {
		return err
	}
	return b.repo.moveRefs(ctx, c, "merge", objects.RefUpdate{Name: b.ref(), Old: r.Ours, New: r.Theirs})
}

// requireOutsideToolLoop returns a *[ToolLoopError] for a history that ends inside a tool loop:
// blocks that follow there would not answer its calls.
func (r *Repo) requireOutsideToolLoop(ctx context.Context, where string, tip objects.ID) error {
	p, err := r.promptIfLastTurnUsedTools(ctx, tip)
	if err != nil || p == nil {
		return err
	}
	e := &ToolLoopError{Operation: "merge", Where: where}
	for _, pending := range p.Pending {
		e.Calls = append(e.Calls, pending.Call.CallID)
	}
	if n := len(p.Messages); len(e.Calls) > 0 || n > 0 && p.Messages[n-1].Role == content.RoleTool {
		return e
	}
	return nil
}

// joinHistories writes the commits that join two histories that have diverged.
func (b *Branch) joinHistories(ctx context.Context, c *callOptions, m MergeOptions, r *MergeResult) error {
	store := b.repo.store
	tip, err := b.repo.header(ctx, r.Ours)
	if err != nil {
		return err
	}
	if err := commit.LoadAll(ctx, store, r.Incoming...); err != nil {
		return err
	}
	p := &mergePlan{repo: b.repo, resolve: m.Resolve}
	if err := p.planChanges(ctx, r); err != nil {
		return err
	}
	r.Conflicts = p.resolved
	r.Kind = Merged
	changes := p.restate
	if m.Squash {
		r.Kind, changes = Squashed, p.sharedBlockChanges
	}
	if m.DryRun {
		m.Summarize = nil // a dry run sends no request
	}
	drafts, more, err := b.mergeOrSquashDrafts(ctx, c, m, r, tip)
	if err != nil {
		return err
	}
	for _, change := range changes {
		d, err := b.changeDraft(ctx, c, change)
		if err != nil {
			return err
		}
		drafts = append(drafts, d)
	}
	if last := len(drafts) - 1; m.Squash && last >= 0 && drafts[last].Label.IsZero() {
		drafts[last].Label = c.label
	}
	if m.DryRun {
		return nil
	}
	commits, put, err := c.maskAndBuild(tip, drafts...)
	if err != nil || len(commits) == 0 {
		r.Tip = r.Ours
		return err
	}
	batch := b.newBatch(c.note(ctx, "merge"), r.Ours, commits, append(more, put...))
	r.Commits = commitIDs(commits)
	if r.Tip = commits[len(commits)-1].ID; m.NoMove {
		batch.Refs = nil
	}
	return history.Apply(ctx, b.repo.store, batch)
}

// mergeOrSquashDrafts returns the drafts of the merge itself: a merge commit, and a summary after it
// if one is requested; for a squash after tip, copies of the blocks with their edits, or one summary. put
// holds the manifest of the request for the summary.
func (b *Branch) mergeOrSquashDrafts(ctx context.Context, c *callOptions, m MergeOptions, r *MergeResult, tip *commit.Commit) (drafts []commit.Draft, put []objects.Object, err error) {
	summary, put, err := b.mergeSummary(ctx, c, m, r)
	switch {
	case err != nil:
		return nil, nil, err
	case m.Squash && summary != nil:
		summary.Op, summary.First, summary.Target, summary.Label = commit.Append, objects.ID{}, objects.ID{}, c.label
		return []commit.Draft{*summary}, put, nil
	case m.Squash:
		drafts, err = b.repo.squashDrafts(ctx, c, tip, r)
		return drafts, nil, err
	}
	d := b.newChangeDraft(c, commit.Merge, objects.ID{})
	if d.SecondParent, err = b.repo.header(ctx, r.Theirs); err != nil {
		return nil, nil, err
	}
	drafts = []commit.Draft{d}
	if summary != nil {
		drafts = append(drafts, *summary)
	}
	return drafts, put, nil
}

// mergeSummary returns the draft of the summary of the incoming blocks, nil when none is
// requested. put holds the manifest of the request for the summary.
func (b *Branch) mergeSummary(ctx context.Context, c *callOptions, m MergeOptions, r *MergeResult) (summary *commit.Draft, put []objects.Object, err error) {
	if m.Summary == "" && m.Summarize == nil {
		return nil, nil, nil
	}
	d := b.newChangeDraft(c, commit.Compress, r.Incoming[len(r.Incoming)-1].ID)
	d.First, d.Label = r.Incoming[0].ID, commit.Label{}
	text := m.Summary
	if m.Summarize != nil {
		asked, err := b.repo.incomingToSummarize(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if text, d.Origin, put, err = b.storeQuestionAndGenerateSummary(ctx, c, m.Summarize, asked); err != nil {
			return nil, nil, err
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil, ErrEmpty
	}
	d.Block = content.Text{Of: content.KindSummary, Text: text}
	return &d, put, nil
}

// incomingToSummarize returns the incoming blocks that a summary would stand for: those that
// are sent with normal priority and are no system blocks.
func (r *Repo) incomingToSummarize(ctx context.Context, m *MergeResult) (*Summary, error) {
	p, err := compile.Chain(ctx, r.store, m.Theirs, compile.Options{})
	if err != nil {
		return nil, err
	}
	wanted := map[objects.ID]bool{}
	for _, c := range m.Incoming {
		wanted[c.ID] = true
	}
	var entries []*compile.Entry
	for i := range p.Entries {
		e := &p.Entries[i]
		if !wanted[e.ID] || !e.InPrompt || e.Level != priority.Normal || e.Kind == content.KindSystem {
			continue
		}
		entries = append(entries, e)
	}
	found := &Summary{}
	found.Commits, err = r.loadCommitsInForce(ctx, entries)
	return found, err
}

// squashDrafts returns the drafts of copies of the incoming blocks, with their priorities, and after them
// copies of the last edits of these blocks. An edit has a commit of its own, because it has an author of
// its own: the copy of a block has the text of its author or model. The first draft follows tip.
func (r *Repo) squashDrafts(ctx context.Context, c *callOptions, tip *commit.Commit, m *MergeResult) ([]commit.Draft, error) {
	entries, err := compile.Decisions(ctx, r.store, m.Theirs, compile.Options{})
	if err != nil {
		return nil, err
	}
	at := map[objects.ID]*compile.Entry{}
	for i := range entries {
		at[entries[i].ID] = &entries[i]
	}
	last, _ := history.LatestChanges(m.Incoming)
	var drafts, edits []commit.Draft
	var edited []int // for each edit the draft of its block
	var before *commit.Commit
	for _, block := range m.Incoming {
		if block.Op != commit.Append && block.Op != commit.Compress {
			continue
		}
		d := draftOf(block)
		d.Op, d.Key, d.Index, d.Target, d.First, d.Scope = commit.Append, commit.Key{}, 0, objects.ID{}, objects.ID{}, commit.ScopeAll
		if before != nil && sameMessage(before, block) {
			d.Index = drafts[len(drafts)-1].Index + 1
		}
		if edit := last[history.ChangeKey{Target: block.ID, Op: commit.Edit}]; edit != nil && edit.ContentID != block.ContentID {
			e := draftOf(edit)
			e.Key = commit.Key{}
			edits, edited = append(edits, e), append(edited, len(drafts))
		}
		if note := last[history.ChangeKey{Target: block.ID, Op: commit.Annotate}]; note != nil {
			d.Priority = note.Priority
		}
		if e := at[block.ID]; e != nil && !e.SummarizedBy().IsZero() && !e.InPrompt && e.Level != priority.Skip && block.Role != content.NoRole {
			d.Priority = priority.Skip // a summary stands for it
		}
		drafts, before = append(drafts, d), block
	}
	if len(edits) == 0 {
		return drafts, nil
	}
	copies, _, err := commit.Write(tip, c.newMasker().Drafts(drafts)...) // for their ids
	if err != nil {
		return nil, err
	}
	for i := range edits {
		edits[i].Target = copies[edited[i]].ID
	}
	return append(drafts, edits...), nil
}
