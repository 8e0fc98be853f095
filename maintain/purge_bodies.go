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

// selectBodies selects the bodies of requests that contain purged blocks or tools, and finds the other
// bodies that are differences to purged ones.
func (w *purge) selectBodies(ctx context.Context) error {
	all, err := w.store.Find(ctx, objects.KindBody, "", 0)
	if err != nil || len(all) == 0 || len(w.has) == 0 {
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
	for obj, err := range w.store.Get(ctx, all) {
		switch {
		case errors.Is(err, objects.ErrPurged):
		case err != nil:
			return err
		case w.has[obj.FirstParent()] && !w.has[obj.ID]:
			w.rebased = append(w.rebased, obj.ID)
		}
	}
	return nil
}

// selectBodyAndStoredCopy selects a body and the copy of it that was stored when its base was
// purged, if there is one.
func (w *purge) selectBodyAndStoredCopy(ctx context.Context, obj objects.Object) error {
	if !w.has[obj.ID] {
		w.addTombstone(obj.ID, int64(len(obj.Data)), nil)
		w.lists = append(w.lists, obj.ID)
		w.done.Bodies++
	}
	ref, err := objects.ReadRef(ctx, w.store, requestbody.CopyRef(obj.ID))
	if err != nil || ref.Target.IsZero() {
		return err
	}
	return w.selectObject(ctx, ref.Target)
}

// bodiesWithPurgedContent returns the bodies whose requests contain purged blocks or tools.
func (w *purge) bodiesWithPurgedContent(ctx context.Context) (map[objects.ID]bool, error) {
	line, err := w.allCommitsByDepth(ctx)
	if err != nil {
		return nil, err
	}
	clientOrigins, manifests, err := w.readOrigins(ctx, line)
	if err != nil {
		return nil, err
	}
	blocks := w.repeatedPurgedBlocks(line, clientOrigins)
	bodies := map[objects.ID]bool{}
	for obj, err := range w.store.Get(ctx, manifests) {
		if err != nil {
			return nil, err
		}
		m, err := compile.ParseManifest(obj)
		if err != nil {
			return nil, err
		}
		if !m.Body.IsZero() && (blocks[m.Head] != nil || w.has[m.Tools]) {
			bodies[m.Body] = true
		}
	}
	return bodies, nil
}

// repeatedPurgedBlocks returns, for each commit that has any, the purged blocks that a client
// repeats which continues after the commit. clientOrigins are the origins of changes that the
// client made.
func (w *purge) repeatedPurgedBlocks(line []*commit.Commit, clientOrigins map[objects.ID]bool) map[objects.ID]*purgedList {
	blocks := map[objects.ID]*purgedList{}
	for _, c := range line {
		var in *purgedList
		for _, parent := range c.Parents {
			in = in.union(blocks[parent])
		}
		changed := c.ID
		if c.Op == commit.Edit || c.Op == commit.Annotate && c.Priority == priority.Skip {
			if changed = c.Target; clientOrigins[c.OriginID] {
				in = in.without(changed)
			}
		}
		if w.has[c.ContentID] && c.Op != commit.Annotate {
			in = &purgedList{changed, in}
		}
		if in != nil {
			blocks[c.ID] = in
		}
	}
	return blocks
}

// allCommitsByDepth returns the headers of all commits, parents before their children.
func (w *purge) allCommitsByDepth(ctx context.Context) (line []*commit.Commit, err error) {
	for c, err := range everReachable(ctx, w.store) {
		if err != nil {
			return nil, err
		}
		line = append(line, c)
	}
	slices.SortStableFunc(line, func(a, b *commit.Commit) int { return cmp.Compare(a.Depth, b.Depth) })
	return line, nil
}

// readOrigins returns the origins that a recorder or an importer wrote for what its client has, and
// the manifests of all origins.
func (w *purge) readOrigins(ctx context.Context, line []*commit.Commit) (clientOrigins map[objects.ID]bool, manifests []objects.ID, err error) {
	var ids []objects.ID
	seen := map[objects.ID]bool{{}: true}
	for _, c := range line {
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

// storeRebasedWhole stores the bodies whole whose bases are about to be purged.
func (w *purge) storeRebasedWhole(ctx context.Context) error {
	for _, id := range w.rebased {
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
