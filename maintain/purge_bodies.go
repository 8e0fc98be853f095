package maintain

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// How request bodies are purged. A recorded request repeats its history, so its body is purged if
// the history of its manifest's head has a purged block, unless the recorder found that the client
// had replaced the block or left it out before that. Bodies are also purged if their tools are, or
// if a scan found a secret in them. A body that stays although its base is purged is first stored
// whole. Edits and annotations that a person made do not count: they change no request of the client.

// purgedList is a list of the blocks with purged content in a history. Histories share the rest of
// a list.
type purgedList struct {
	commit objects.ID // that adds the block, also if an edit has the content
	next   *purgedList
}

// without returns the list without a block.
func (b *purgedList) without(commit objects.ID) *purgedList {
	switch {
	case b == nil:
		return nil
	case b.commit == commit:
		return b.next.without(commit)
	}
	rest := b.next.without(commit)
	if rest == b.next {
		return b
	}
	return &purgedList{b.commit, rest}
}

// union returns the blocks of two lists.
func (b *purgedList) union(other *purgedList) *purgedList {
	if b == nil || b == other {
		return other
	}
	has := map[objects.ID]bool{}
	for at := b; at != nil; at = at.next {
		has[at.commit] = true
	}
	for ; other != nil; other = other.next {
		if !has[other.commit] {
			b = &purgedList{other.commit, b}
		}
	}
	return b
}

// selectBodies selects the bodies of requests that contain purged blocks or tools.
func (w *purge) selectBodies(ctx context.Context) error {
	some, err := w.store.Find(ctx, objects.KindBody, "", 1)
	if err != nil || len(some) == 0 || len(w.hasTombstone) == 0 {
		return err
	}
	bodies, err := w.bodiesWithPurgedContent(ctx)
	if err != nil {
		return err
	}
	for id := range bodies {
		if err := w.selectObject(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// findBodiesToStoreWhole finds the bodies that stay and are differences to selected ones.
func (w *purge) findBodiesToStoreWhole(ctx context.Context) error {
	if len(w.hasTombstone) == 0 {
		return nil
	}
	all, err := w.store.Find(ctx, objects.KindBody, "", 0)
	if err != nil {
		return err
	}
	for obj, err := range w.store.Get(ctx, all) {
		switch {
		case errors.Is(err, objects.ErrPurged):
		case err != nil:
			return err
		case w.hasTombstone[obj.FirstParent()] && !w.hasTombstone[obj.ID]:
			w.bodiesToStoreWhole = append(w.bodiesToStoreWhole, obj.ID)
		}
	}
	return nil
}

// selectBodyAndWholeCopy selects a body and the whole copy of it that was stored when its base was
// purged, if there is one.
func (w *purge) selectBodyAndWholeCopy(ctx context.Context, body objects.Object) error {
	if !w.hasTombstone[body.ID] {
		w.addTombstone(body.ID, int64(len(body.Data)), nil)
		w.chunked = append(w.chunked, body.ID)
		w.result.Bodies++
	}
	ref, err := objects.ReadRef(ctx, w.store, requestbody.CopyRef(body.ID))
	if err != nil || ref.Target.IsZero() {
		return err
	}
	return w.selectObject(ctx, ref.Target)
}

// bodiesWithPurgedContent returns the bodies whose requests contain purged blocks or tools.
func (w *purge) bodiesWithPurgedContent(ctx context.Context) (map[objects.ID]bool, error) {
	commits, err := w.allCommitsByDepth(ctx)
	if err != nil {
		return nil, err
	}
	clientOrigins, manifests, err := w.readOrigins(ctx, commits)
	if err != nil {
		return nil, err
	}
	sentAfter := w.purgedBlocksSentAfter(commits, clientOrigins)
	bodies := map[objects.ID]bool{}
	for obj, err := range w.store.Get(ctx, manifests) {
		if err != nil {
			return nil, err
		}
		m, err := compile.ParseManifest(obj)
		if err != nil {
			return nil, err
		}
		if !m.Body.IsZero() && (sentAfter[m.Head] != nil || w.hasTombstone[m.Tools]) {
			bodies[m.Body] = true
		}
	}
	return bodies, nil
}

// purgedBlocksSentAfter returns by commit the purged blocks that a client sends in every request
// that continues after this commit. commitsByDepth has parents before their children;
// clientOrigins are the origins of changes that the client made.
func (w *purge) purgedBlocksSentAfter(commitsByDepth []*commit.Commit, clientOrigins map[objects.ID]bool) (byCommit map[objects.ID]*purgedList) {
	byCommit = map[objects.ID]*purgedList{}
	for _, c := range commitsByDepth {
		var in *purgedList
		for _, parent := range c.Parents {
			in = in.union(byCommit[parent])
		}
		changed := c.ID
		if c.Op == commit.Edit || c.Op == commit.Annotate && c.Priority == priority.Skip {
			if changed = c.Target; clientOrigins[c.OriginID] {
				in = in.without(changed)
			}
		}
		if w.hasTombstone[c.ContentID] && c.Op != commit.Annotate {
			in = &purgedList{changed, in}
		}
		if in != nil {
			byCommit[c.ID] = in
		}
	}
	return byCommit
}

// allCommitsByDepth returns the headers of all commits, parents before their children.
func (w *purge) allCommitsByDepth(ctx context.Context) (commits []*commit.Commit, err error) {
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	slices.SortStableFunc(commits, func(a, b *commit.Commit) int { return cmp.Compare(a.Depth, b.Depth) })
	return commits, nil
}

// readOrigins returns the origins that a recorder or an importer wrote for what its client has, and
// the manifests of all origins.
func (w *purge) readOrigins(ctx context.Context, commits []*commit.Commit) (clientOrigins map[objects.ID]bool, manifests []objects.ID, err error) {
	var ids []objects.ID
	seen := map[objects.ID]bool{{}: true}
	for _, c := range commits {
		if !seen[c.OriginID] {
			seen[c.OriginID], ids = true, append(ids, c.OriginID)
		}
	}
	clientOrigins = map[objects.ID]bool{}
	for obj, err := range w.store.Get(ctx, ids) {
		if err != nil {
			return nil, nil, err
		}
		o, err := commit.ParseOrigin(obj)
		if err != nil {
			return nil, nil, err
		}
		clientOrigins[obj.ID] = o.Source == commit.SourceImport
		if !seen[o.Manifest] {
			seen[o.Manifest], manifests = true, append(manifests, o.Manifest)
		}
	}
	return clientOrigins, manifests, nil
}

// storeBodiesWhole stores a whole copy of each body whose base is about to be purged.
func (w *purge) storeBodiesWhole(ctx context.Context) error {
	for _, id := range w.bodiesToStoreWhole {
		b, err := requestbody.Read(ctx, w.store, id)
		if errors.Is(err, objects.ErrPurged) {
			continue // a base was purged before, without a copy of this body
		}
		if err != nil {
			return err
		}
		name := requestbody.CopyRef(id)
		old, err := objects.ReadRef(ctx, w.store, name)
		if err != nil {
			return err
		}
		whole, put := requestbody.Encode(b.Data, b.Masked, nil)
		if old.Target == whole.ID {
			continue
		}
		err = history.Apply(ctx, w.store, objects.Batch{
			Put:  put,
			Refs: []objects.RefUpdate{{Name: name, Old: old.Target, New: whole.ID}},
			Note: history.OperationOf(history.AsOperation(ctx, "purge")).Note(w.Time, w.Author, "purge"), // no undo reverts it
		})
		if err != nil {
			return err
		}
	}
	return nil
}
