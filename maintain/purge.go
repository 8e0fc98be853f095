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

// PurgeOptions is which content [Purge] removes: that of Revs, or with Reasoning or Secrets
// what is found in the histories of Revs.
type PurgeOptions struct {
	Revs []string // commits, ranges A..B of what B has and A has not, or ids of other objects with content

	Reasoning bool          // reasoning in the histories of Revs; without Revs, of all that a ref leads to or ever led to
	OlderThan time.Duration // with Reasoning: only what was committed so long ago; 0: of any age

	Secrets bool     // what Scan finds in the histories of Revs; without Revs, in everything
	Rules   []string // with Secrets: only what these rules find; nil: all rules
	Mask    bool     // with Secrets: blocks with masks replace those with secrets, on every branch

	Why      string    // reason that tombstones give; never the content itself
	Author   string    // of edits with masks, and in the ref log
	Time     time.Time // of tombstones, edits and the ref log; zero: now
	Spools   []string  // folders in which recorders keep exchanges (recorder.Options.Spool), besides the one in the store's folder
	DryRun   bool      // only report what would be purged
	Progress func(done, total int64)
}

// PurgeResult is what a [Purge] removed, or would remove.
type PurgeResult struct {
	Commits   []*commit.Commit        // whose content or label is purged, because they were named or found
	Shared    []*commit.Commit        // other commits with equal content, which is the same object: they lose it too
	Edits     []*commit.Commit        // edits of Commits: their content is their own, and stays
	Copies    []*commit.Commit        // inputs of models that wrote a summary, with purged content in them: purged whole; on no branch
	Others    []objects.ID            // purged objects that are the content of no commit
	Masked    map[string][]objects.ID // by branch, the edits and annotations with masks; of a dry run none
	Spared    Spared                  // of the reasoning
	Remaining []Leak                  // secrets that stay

	Objects    int   // purged: 0 of a dry run
	Bytes      int64 // of content that is purged
	SizeBefore int64 // bytes of the store
	SizeAfter  int64 // the same as before when nothing was done
}

// Spared counts reasoning that is not purged, each block once, by the first reason.
type Spared struct {
	Young  int // it is not old enough
	Pinned int // a branch has pinned it
	Open   int // an open tool loop needs it
	Shared int // it equals reasoning that is spared
}

// Purge removes content: from every branch that has it and from every file of the
// store. The commits stay, every hash still holds, and tombstones say when and why. An
// edit has content of its own: it is purged when it is named. Purge cannot be undone, and
// reaches no copy of the store, no remote and no provider. Content that was purged
// before is passed over, so that Purge is safe to repeat. Recorded exchanges that a spool
// keeps after their commit are removed, all of them.
//
// With Reasoning, text and seals go, and usage is still counted. Spared is reasoning
// that a branch has pinned, that of a last turn in which tools were used, and what equals
// reasoning that stays. An edit goes with its block.
//
// With Secrets, every block, label, description and definition of tools with a secret
// in it goes. With Mask, edits and annotations with masks replace the blocks first,
// on every branch where they count; a seal goes with its block, and a block stays
// whose seal an open tool loop needs. Origins, requests and names always stay.
func Purge(ctx context.Context, repo *tract.Repo, o PurgeOptions) (*PurgeResult, error) {
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	w := &purge{
		PurgeOptions: o, repo: repo, store: repo.Store(), has: map[objects.ID]bool{},
		named: map[objects.ID]bool{}, wanted: map[objects.ID]bool{}, masked: map[objects.ID]content.Block{},
		transcripts: map[objects.ID][]*commit.Commit{},
		done:        &PurgeResult{Masked: map[string][]objects.ID{}},
	}
	w.resolver = refs.Resolver{Store: w.store, Now: func() time.Time { return o.Time }}
	if err := w.run(ctx); err != nil {
		return nil, fmt.Errorf("purge: %w", err)
	}
	return w.done, nil
}

// purge is one Purge.
type purge struct {
	PurgeOptions
	repo     *tract.Repo
	store    objects.Store
	resolver refs.Resolver
	done     *PurgeResult

	named       map[objects.ID]bool             // commits
	wanted      map[objects.ID]bool             // objects that were named by id, or have a secret
	masked      map[objects.ID]content.Block    // what replaces contents
	transcripts map[objects.ID][]*commit.Commit // by content: the commits whose transcript repeats it

	has        map[objects.ID]bool // objects in tombstones
	tombstones []objects.Tombstone // of what will be purged
	lists      []objects.ID        // of those, content in chunks
}

func (w *purge) run(ctx context.Context) error {
	if w.Reasoning && w.Secrets {
		return errors.New("want either reasoning or secrets, not both")
	}
	err := w.findTranscripts(ctx)
	switch {
	case err != nil:
	case w.Reasoning:
		err = w.addReasoning(ctx)
	case w.Secrets:
		err = w.addSecrets(ctx)
	default:
		err = w.addRevs(ctx)
	}
	if err == nil && !w.Reasoning { // reasoning that other commits share is spared
		err = w.findAffected(ctx)
	}
	w.done.SizeBefore = size(ctx, w.store)
	w.done.SizeAfter = w.done.SizeBefore
	if err != nil || w.DryRun {
		return err
	}
	if len(w.tombstones) > 0 {
		if err := w.writeMasks(ctx); err != nil {
			return err
		}
		if err := w.writeTombstones(ctx); err != nil {
			return err
		}
	}
	return clearSpools(ctx, w.store, w.Spools) // also when an earlier purge could not clear them
}

// addRevs adds what Revs name.
func (w *purge) addRevs(ctx context.Context) error {
	list, err := w.commits(ctx)
	if err != nil {
		return err
	}
	if len(list) == 1 && len(w.Revs) == 1 && list[0].ContentID.IsZero() && list[0].LabelID.IsZero() {
		return &refs.UnknownError{Rev: w.Revs[0], Why: fmt.Sprintf("the %s has no content", list[0].Op)}
	}
	if _, err := w.addContents(ctx, list); err != nil {
		return err
	}
	for _, c := range list {
		if !c.LabelID.IsZero() {
			if err := w.addObject(ctx, c.LabelID); err != nil {
				return err
			}
		}
		if w.has[c.ContentID] || w.has[c.LabelID] {
			w.named[c.ID], w.done.Commits = true, append(w.done.Commits, c)
		}
	}
	return nil
}

// commits lists the commits that Revs name, each once, and adds what else they name.
func (w *purge) commits(ctx context.Context) (list []*commit.Commit, err error) {
	seen := map[objects.ID]bool{}
	for _, rev := range w.Revs {
		added, err := w.addOther(ctx, rev)
		if err != nil {
			return nil, err
		}
		if added {
			continue
		}
		commits, alone, err := w.revision(ctx, rev)
		if err != nil {
			return nil, err
		}
		for c, err := range commits {
			if err != nil {
				return nil, err
			}
			if own := *c; !seen[c.ID] {
				seen[c.ID], list = true, append(list, &own)
			}
			if alone { // the commit itself, and not its history
				break
			}
		}
	}
	return list, nil
}

// revision returns the headers of the commits in a range A..B, or in the history of a
// revision. alone is true for a revision.
func (w *purge) revision(ctx context.Context, rev string) (commits iter.Seq2[*commit.Commit, error], alone bool, err error) {
	from, to, err := w.resolver.Range(ctx, rev)
	return commit.History(ctx, w.store, []objects.ID{to}, []objects.ID{from}), from.IsZero(), err
}

// addOther adds the object that rev names, and reports whether it is no commit.
func (w *purge) addOther(ctx context.Context, rev string) (bool, error) {
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
	w.wanted[id] = true
	return true, w.addObject(ctx, id)
}

// findAffected finds the commits that have the objects that are wanted, and the other
// commits that are concerned.
func (w *purge) findAffected(ctx context.Context) error {
	var edits []*commit.Commit
	used := map[objects.ID]bool{}
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return err
		}
		goes := w.has[c.ContentID] || w.has[c.LabelID]
		if goes {
			used[c.ContentID], used[c.LabelID] = true, true
		}
		switch {
		case w.named[c.ID]:
		case goes && (w.wanted[c.ContentID] || w.wanted[c.LabelID]):
			w.named[c.ID], w.done.Commits = true, append(w.done.Commits, c)
		case goes:
			w.done.Shared = append(w.done.Shared, c)
		case c.Op == commit.Edit:
			edits = append(edits, c)
		}
	}
	for _, c := range edits {
		if w.named[c.Target] {
			w.done.Edits = append(w.done.Edits, c)
		}
	}
	for _, c := range w.done.Copies {
		used[c.ContentID] = true
	}
	for _, t := range w.tombstones {
		if w.wanted[t.ID] && !used[t.ID] {
			w.done.Others = append(w.done.Others, t.ID)
		}
	}
	return nil
}
