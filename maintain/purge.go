package maintain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// How content is purged. Commits and their hashes must stay valid, so Purge removes no commit, only
// the objects that commits link to: contents, labels, descriptions and tool definitions. It replaces
// each object by a tombstone, which has the object's id, the time and the reason. Blocks with equal
// content share one object, so the result lists the other commits that lose it too. A long content
// consists of chunks under a list object; the chunks that no other content uses are purged as well.
// A transcript that a model received to write a summary repeats the content of other commits, and is
// purged with them, and so are the bodies of recorded requests (purge_bodies.go). The objects are
// removed from the store's files by the engine; only then the spools of recorders are cleared.

// PurgeOptions select the content that [Purge] removes: the content of Revs, or with Reasoning or
// Secrets the reasoning or the secrets in the histories of Revs.
type PurgeOptions struct {
	Revs []string // commits, ranges A..B (commits that B has and A does not have), or ids of other objects with content

	Reasoning bool          // reasoning in the histories of Revs; without Revs, in all commits that a ref leads to or ever led to
	OlderThan time.Duration // with Reasoning: only reasoning that was committed longer ago; 0: of any age

	Secrets bool     // secrets that Scan finds in the histories of Revs; without Revs, in everything
	Rules   []string // with Secrets: only secrets that these rules find; nil: all rules
	Mask    bool     // with Secrets: on every branch, edits with masks replace the blocks with secrets

	Why      string    // reason that tombstones give; never the content itself
	Author   string    // of edits with masks, and in the ref log
	Time     time.Time // of tombstones, edits and the ref log; zero: now
	Spools   []string  // folders in which recorders keep exchanges (recorder.Options.Spool), besides the one in the store's folder
	DryRun   bool      // only report what would be purged
	Progress func(done, total int64)
}

// PurgeResult is what a [Purge] removed, or would remove.
type PurgeResult struct {
	Commits   []*commit.Commit        // selected commits, whose content or label is purged
	Shared    []*commit.Commit        // other commits that share the purged objects, because their content is equal: they lose it too
	Edits     []*commit.Commit        // edits of Commits: they have content of their own, which stays
	Copies    []*commit.Commit        // transcripts that models received to write a summary and that repeat purged content: purged as a whole; on no branch
	Others    []objects.ID            // purged objects that are the content of no commit
	Masked    map[string][]objects.ID // by branch, the edits and annotations with masks; empty for a dry run
	Spared    Spared                  // reasoning that stays
	Remaining []Leak                  // secrets that stay

	Bodies     int   // bodies of requests that contain purged content: purged as a whole
	Objects    int   // number of purged objects; 0 for a dry run
	Bytes      int64 // size of the purged content
	SizeBefore int64 // bytes of the store
	SizeAfter  int64 // equal to SizeBefore when nothing was purged
}

// Spared counts reasoning that is not purged, each block once, by the first reason that applies.
type Spared struct {
	Young  int // reasoning that is not older than OlderThan
	Pinned int // reasoning that is pinned on a branch
	Open   int // reasoning that an open tool loop needs
	Shared int // reasoning with the same content as reasoning that stays
}

// Purge removes content for good, from every branch and from every file of the store. The commits
// stay, every hash stays valid, and tombstones record when and why content was purged. An edit has
// content of its own, which is purged only when the edit is selected. Purge cannot be undone, and
// it does not reach copies of the store, remotes or providers. Content that was purged before is
// skipped, so Purge is safe to repeat. Purge also removes the stored bodies of recorded requests that
// contain purged content, and all committed exchanges that recorders keep in their spools.
//
// With Reasoning, text and seals are purged, and usage is still counted. Reasoning stays when it
// is pinned on a branch, when it is in a last turn with tools, and when its content is equal to
// reasoning that stays. An edit is purged together with its block.
//
// With Secrets, every block, label, description and definition of tools that contains a secret is
// purged. With Mask, Purge first commits edits and annotations with masks on every branch where
// the blocks are in effect; a seal is purged with its block, and a block whose seal an open tool
// loop needs stays. Origins, requests and names always stay.
func Purge(ctx context.Context, repo *tract.Repo, o PurgeOptions) (*PurgeResult, error) {
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	w := &purge{
		PurgeOptions: o, repo: repo, store: repo.Store(), hasTombstone: map[objects.ID]bool{},
		selectedCommits: map[objects.ID]bool{}, selectedIDs: map[objects.ID]bool{}, masked: map[objects.ID]content.Block{},
		transcripts: map[objects.ID][]*commit.Commit{},
		result:      &PurgeResult{Masked: map[string][]objects.ID{}},
	}
	w.resolver = refs.Resolver{Store: w.store, Now: func() time.Time { return o.Time }}
	if err := w.run(ctx); err != nil {
		return nil, fmt.Errorf("purge: %w", err)
	}
	return w.result, nil
}

// purge is the state of one Purge. selectRevs, selectReasoning or selectSecrets select objects and collect
// their tombstones; addAffectedCommitsToResult reports the commits that have these objects;
// commitMaskingEdits commits the edits with masks; purgeSelected replaces the objects by the
// tombstones.
type purge struct {
	PurgeOptions
	repo     *tract.Repo
	store    objects.Store
	resolver refs.Resolver
	result   *PurgeResult

	selectedCommits map[objects.ID]bool
	selectedIDs     map[objects.ID]bool             // objects that were selected by id, or have a secret
	masked          map[objects.ID]content.Block    // by content: the masked block that replaces it
	transcripts     map[objects.ID][]*commit.Commit // by content: the transcripts that repeat it

	hasTombstone       map[objects.ID]bool // the objects of tombstones
	tombstones         []objects.Tombstone // tombstones of the objects to purge
	chunked            []objects.ID        // the objects to purge whose content is in chunks, and bodies
	bodiesToStoreWhole []objects.ID        // bodies that stay although their base is purged
}

// run selects the content and purges it.
func (w *purge) run(ctx context.Context) error {
	if w.Reasoning && w.Secrets {
		return errors.New("want either reasoning or secrets, not both")
	}
	err := w.indexSummaryTranscripts(ctx)
	switch {
	case err != nil:
	case w.Reasoning:
		err = w.selectReasoning(ctx)
	case w.Secrets:
		err = w.selectSecrets(ctx)
	default:
		err = w.selectRevs(ctx)
	}
	if err == nil && !w.Reasoning { // reasoning that other commits share is spared
		err = w.addAffectedCommitsToResult(ctx)
	}
	if err == nil {
		err = w.selectBodies(ctx)
	}
	if err == nil {
		err = w.findBodiesToStoreWhole(ctx)
	}
	w.result.SizeBefore = storeSize(ctx, w.store)
	w.result.SizeAfter = w.result.SizeBefore
	if err != nil || w.DryRun {
		return err
	}
	if len(w.tombstones) > 0 {
		if err := w.commitMaskingEdits(ctx); err != nil {
			return err
		}
		if err := w.purgeSelected(ctx); err != nil {
			return err
		}
	}
	if err := removeCommittedExchangesFromSpools(ctx, w.store, w.Spools); err != nil { // also when an earlier purge could not clear them
		return err
	}
	return w.purgeNewBodies(ctx)
}

// purgeNewBodies purges the bodies that a recorder stored before it saw that the spools were cleared.
func (w *purge) purgeNewBodies(ctx context.Context) error {
	w.tombstones, w.chunked, w.bodiesToStoreWhole = nil, nil, nil
	if err := w.selectBodies(ctx); err != nil || len(w.tombstones) == 0 {
		return err
	}
	if err := w.findBodiesToStoreWhole(ctx); err != nil {
		return err
	}
	return w.purgeSelected(ctx)
}

// selectRevs selects the content and the labels of Revs.
func (w *purge) selectRevs(ctx context.Context) error {
	commits, err := w.listCommitsAndSelectNonCommits(ctx)
	if err != nil {
		return err
	}
	if len(commits) == 1 && len(w.Revs) == 1 && commits[0].ContentID.IsZero() && commits[0].LabelID.IsZero() {
		return &refs.UnknownError{Rev: w.Revs[0], Why: fmt.Sprintf("the %s has no content", commits[0].Op)}
	}
	if _, err := w.selectContents(ctx, commits); err != nil {
		return err
	}
	for _, c := range commits {
		if !c.LabelID.IsZero() {
			if err := w.selectObject(ctx, c.LabelID); err != nil {
				return err
			}
		}
		if w.hasTombstone[c.ContentID] || w.hasTombstone[c.LabelID] {
			w.selectedCommits[c.ID], w.result.Commits = true, append(w.result.Commits, c)
		}
	}
	return nil
}

// listCommitsAndSelectNonCommits lists the commits that Revs name, each once, and selects the objects
// of other kinds that they name.
func (w *purge) listCommitsAndSelectNonCommits(ctx context.Context) (commits []*commit.Commit, err error) {
	seen := map[objects.ID]bool{}
	for _, rev := range w.Revs {
		selected, err := w.selectNonCommit(ctx, rev)
		if err != nil {
			return nil, err
		}
		if selected {
			continue
		}
		history, isRange, err := w.historyOfRev(ctx, rev)
		if err != nil {
			return nil, err
		}
		for c, err := range history {
			if err != nil {
				return nil, err
			}
			if own := *c; !seen[c.ID] {
				seen[c.ID], commits = true, append(commits, &own)
			}
			if !isRange { // only the commit itself, not its history
				break
			}
		}
	}
	return commits, nil
}

// historyOfRev returns the headers of the commits in a range A..B, or those of a single revision
// and of its whole history, newest first.
func (w *purge) historyOfRev(ctx context.Context, rev string) (history iter.Seq2[*commit.Commit, error], isRange bool, err error) {
	from, to, err := w.resolver.Range(ctx, rev)
	return commit.History(ctx, w.store, []objects.ID{to}, []objects.ID{from}), !from.IsZero(), err
}

// selectNonCommit selects the object that rev names, unless it is a commit or rev is no id of an
// object. selected is true for an object that is no commit.
func (w *purge) selectNonCommit(ctx context.Context, rev string) (selected bool, err error) {
	id, err := w.resolver.Object(ctx, rev)
	if err != nil {
		return false, nil //nolint:nilerr // such as a range: it is resolved as one, with a better error
	}
	o, err := objects.Read(ctx, w.store, id)
	switch {
	case errors.Is(err, objects.ErrPurged):
		return true, nil
	case err != nil, o.Kind == objects.KindCommit:
		return false, err
	}
	w.selectedIDs[id] = true
	return true, w.selectObject(ctx, id)
}

// addAffectedCommitsToResult adds to the result the commits whose content or label is purged, the edits
// of the selected commits, and the selected objects that no commit has as content or label. It selects
// nothing more to purge.
func (w *purge) addAffectedCommitsToResult(ctx context.Context) error {
	var edits []*commit.Commit
	isContent := map[objects.ID]bool{}
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return err
		}
		isPurged := w.hasTombstone[c.ContentID] || w.hasTombstone[c.LabelID]
		if isPurged {
			isContent[c.ContentID], isContent[c.LabelID] = true, true
		}
		switch {
		case w.selectedCommits[c.ID]:
		case isPurged && (w.selectedIDs[c.ContentID] || w.selectedIDs[c.LabelID]):
			w.selectedCommits[c.ID], w.result.Commits = true, append(w.result.Commits, c)
		case isPurged:
			w.result.Shared = append(w.result.Shared, c)
		case c.Op == commit.Edit:
			edits = append(edits, c)
		}
	}
	for _, c := range edits {
		if w.selectedCommits[c.Target] {
			w.result.Edits = append(w.result.Edits, c)
		}
	}
	for _, c := range w.result.Copies {
		isContent[c.ContentID] = true
	}
	for _, t := range w.tombstones {
		if w.selectedIDs[t.ID] && !isContent[t.ID] {
			w.result.Others = append(w.result.Others, t.ID)
		}
	}
	return nil
}
