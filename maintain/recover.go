package maintain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// How a store is recovered. The engine's audit yields every object that it can still find in the
// damaged files; intact objects are put into a new store in batches, and a graph keeps their links.
// The ref log is restored next: the entries that continue the chain of each of their refs, with their
// numbers and hashes. Then come the tombstones, and last the refs. A ref whose target was found keeps
// it; for any other ref a rescue ref is made at the newest intact target in the ref log. When refs or
// log entries may be lost, each tip that no ref leads to gets a rescue ref too, because it may have
// been a branch.

// RecoverOptions are the options of [Recover].
type RecoverOptions struct {
	Files    safefile.Policy // the owners and permissions of files that are accepted
	Progress func(done, total int64)
}

// Recovery is the result of [Recover].
type Recovery struct {
	Objects int               // objects in the new store
	Purged  int               // purged objects, of which the new store has the tombstone
	Lost    int               // missing objects that objects of the new store link to
	Refs    int               // refs that kept their target
	Rescued map[string]string // by ref whose target is lost: the rescue ref at an earlier target; empty: none was found
	Entries int               // entries of the ref log in the new store
	Damages []objects.Damage  // damages of the old store
}

// Recover salvages the intact objects of the store at the path from, however damaged it is, into
// a new store at the path to, and changes nothing at from. For a ref whose target is lost, it
// makes a ref under refs/rescued/ at the newest intact target. The folder to must not exist; it
// exists only when Recover has finished.
func Recover(ctx context.Context, from, to string, o RecoverOptions) (*Recovery, error) {
	source, err := objects.Open(ctx, from, objects.Options{Damaged: true, Files: o.Files})
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	w := &recovery{ctx: ctx}
	err = createFolderAtomically(to, func(dir string) error {
		if w.target, err = objects.Open(ctx, dir, objects.Options{Create: true}); err != nil {
			return err
		}
		a := w.auditCallbacks()
		a.Deep, a.Progress = true, o.Progress
		err := auditAnyStore(ctx, source, a)
		if err == nil {
			err = w.finish()
		}
		return errors.Join(err, w.target.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	return &w.result, nil
}

// recovery is the state of one Recover, or of one copy of a store.
type recovery struct {
	ctx        context.Context //nolint:containedctx // it is one call
	target     objects.Store
	graph      *graph
	batch      []objects.Object // to be written to the target
	batchBytes int
	tombstones []objects.Tombstone
	refs       []objects.Ref
	entries    []objects.LogEntry
	result     Recovery
}

// recoverBytes is the size of the objects that are put in one batch.
const recoverBytes = 8 << 20

// auditCallbacks returns the callbacks that save the objects of the old store and collect its
// refs, its ref log and its damages.
func (w *recovery) auditCallbacks() objects.Audit {
	return objects.Audit{
		Begin: func(about int) error { // when the audit begins again, the saved objects stay
			if w.graph == nil {
				w.graph = newGraph(about, func(objects.ID, error) error { return nil })
			}
			w.refs, w.entries, w.result.Damages = nil, nil, nil
			return nil
		},
		Objects: func(list []objects.Object) error { return w.graph.add(list, w.save) },
		Tombstone: func(t objects.Tombstone) error {
			if w.graph.addTombstone(t) {
				w.tombstones = append(w.tombstones, t)
			}
			return nil
		},
		Ref:    func(r objects.Ref) error { w.refs = append(w.refs, r); return nil },
		Entry:  func(e objects.LogEntry) error { w.entries = append(w.entries, e); return nil },
		Damage: func(d objects.Damage) error { w.result.Damages = append(w.result.Damages, d); return nil },
	}
}

// save adds a new object to the batch, and writes the batch when it is full.
func (w *recovery) save(o *objects.Object) error {
	w.result.Objects++
	if w.batch, w.batchBytes = append(w.batch, o.Clone()), w.batchBytes+len(o.Data)+100; w.batchBytes < recoverBytes {
		return nil
	}
	return w.flush()
}

// flush writes the batch.
func (w *recovery) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	err := w.target.Apply(w.ctx, objects.Batch{Put: w.batch, Copies: true})
	w.batch, w.batchBytes = nil, 0
	return err
}

// finish writes the last batch, then the ref log, the tombstones and the refs, and counts the lost
// objects.
func (w *recovery) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.restoreRefLog(); err != nil {
		return err
	}
	if err := w.restoreTombstones(); err != nil {
		return err
	}
	targets := w.intactRefsAndRescueRefsForLost()
	if err := w.setRefsAndDeleteOthers(targets); err != nil {
		return err
	}
	var roots []objects.ID
	for _, id := range targets {
		roots = append(roots, id)
	}
	for n, reached := range w.graph.reachableFromIDs(roots) {
		if reached && w.graph.nodes[n].kind == 0 {
			w.result.Lost++
		}
	}
	return nil
}

// restoreTombstones writes the tombstones of the objects that were found nowhere to the new store.
func (w *recovery) restoreTombstones() error {
	w.tombstones = slices.DeleteFunc(w.tombstones, func(t objects.Tombstone) bool {
		n, _ := w.graph.find(t.ID)
		return !w.graph.nodes[n].purged
	})
	n, err := objects.Purge(w.ctx, w.target, w.tombstones, nil)
	w.result.Purged = n
	return err
}

// restoreRefLog writes the ref log to the new store: every entry that continues the chain of each
// of its refs. The entries keep their numbers and their hashes.
func (w *recovery) restoreRefLog() error {
	var seq uint64
	var list []objects.LogEntry
	at := map[string]objects.RefUpdate{} // by ref: its target as Old, the hash of its newest entry as Prev
	for _, e := range w.entries {
		if e.Seq <= seq || !movesBeginAtCurrent(at, e.Refs) {
			continue
		}
		seq, list = e.Seq, append(list, e)
		for _, u := range e.Refs {
			at[u.Name] = objects.RefUpdate{Old: u.New, Prev: e.Hash}
		}
	}
	w.result.Entries = len(list)
	target, ok := objects.As[objects.Maintainer](w.target)
	if !ok {
		return fmt.Errorf("the engine of the new store cannot restore a ref log: %w", errors.ErrUnsupported)
	}
	return target.Restore(w.ctx, list)
}

// movesBeginAtCurrent reports whether the moves of an entry begin at the current targets of their refs.
func movesBeginAtCurrent(current map[string]objects.RefUpdate, moves []objects.RefUpdate) bool {
	seen := map[string]bool{}
	for _, u := range moves {
		have := current[u.Name]
		if seen[u.Name] || u.Old == u.New || u.Old != have.Old || u.Prev != have.Prev || objects.CheckRefName(u.Name) != nil {
			return false
		}
		seen[u.Name] = true
	}
	return len(moves) > 0
}

// intactRefsAndRescueRefsForLost returns the target of each ref in the new store: of each ref whose
// target is intact, and of a rescue ref for each that has lost its target. It counts both in w.result.
func (w *recovery) intactRefsAndRescueRefsForLost() (targets map[string]objects.ID) {
	targets = map[string]objects.ID{}
	for _, r := range w.refs {
		if w.graph.has(r.Target) {
			targets[r.Name] = r.Target
			w.result.Refs++
		}
	}
	w.result.Rescued = map[string]string{}
	for _, r := range w.refs {
		if _, ok := targets[r.Name]; ok {
			continue
		}
		w.result.Rescued[r.Name] = ""
		if id, at := w.lastIntactTarget(r.Name); !id.IsZero() {
			name := freeRescueName(r.Name, at, targets)
			targets[name], w.result.Rescued[r.Name] = id, name
		}
	}
	w.addRescueRefs(targets)
	return targets
}

// lastIntactTarget returns the newest intact target of a ref in the ref log, and the time of its
// entry.
func (w *recovery) lastIntactTarget(ref string) (target objects.ID, at time.Time) {
	for _, e := range slices.Backward(w.entries) {
		for _, u := range e.Refs {
			for _, id := range [2]objects.ID{u.New, u.Old} {
				if u.Name == ref && w.hasCommitContentAndOrigin(id) {
					return id, e.Note.Time
				}
			}
		}
	}
	return objects.ID{}, time.Time{}
}

// freeRescueName returns a name under refs/rescued/ that is not in taken.
func freeRescueName(ref string, t time.Time, taken map[string]objects.ID) string {
	short := strings.TrimPrefix(strings.TrimPrefix(ref, refs.Heads), "refs/")
	for n := 0; ; n++ {
		name := refs.Rescued + short + "/" + t.Add(time.Duration(n)*time.Millisecond).UTC().Format(history.RescueTime)
		if _, ok := taken[name]; !ok {
			return name
		}
	}
}

// hasCommitContentAndOrigin reports whether the old store has a commit, its content, its origin and
// its label, but not whether it has the parents.
func (w *recovery) hasCommitContentAndOrigin(id objects.ID) bool {
	n, ok := w.graph.find(id)
	if !ok || w.graph.nodes[n].kind == 0 {
		return false
	}
	return !slices.ContainsFunc(w.graph.linksFrom(n)[w.graph.nodes[n].parents:], func(to int32) bool { return w.graph.nodes[to].kind == 0 })
}

// addRescueRefs adds rescue refs for the tips of histories without a ref, when refs or entries of
// the ref log are lost: each of these tips may have been a branch.
func (w *recovery) addRescueRefs(targets map[string]objects.ID) {
	damaged := slices.ContainsFunc(w.result.Damages, func(d objects.Damage) bool { return !d.Harmless && d.ID.IsZero() })
	if !damaged && len(w.result.Rescued) == 0 {
		return
	}
	roots := slices.Collect(maps.Values(targets))
	for _, e := range w.entries {
		for _, u := range e.Refs {
			roots = append(roots, u.New, u.Old)
		}
	}
	reached := w.graph.reachableFromIDs(roots)
	hasChild := make([]bool, len(w.graph.nodes))
	for n := range w.graph.nodes {
		for _, to := range w.graph.linksFrom(int32(n))[:w.graph.nodes[n].parents] {
			hasChild[to] = true
		}
	}
	for n, at := range w.graph.nodes {
		if at.kind == objects.KindCommit && !reached[n] && !hasChild[n] && w.hasCommitContentAndOrigin(w.graph.ids[n]) {
			name := freeRescueName("lost/"+w.graph.ids[n].Short(), time.UnixMilli(0), targets)
			targets[name], w.result.Rescued[name] = w.graph.ids[n], name
		}
	}
}

// setRefsAndDeleteOthers moves the refs from where the log left them to their targets, and deletes
// those that have none.
func (w *recovery) setRefsAndDeleteOthers(targets map[string]objects.ID) error {
	have, err := w.target.Refs(w.ctx, objects.RefQuery{})
	if err != nil {
		return err
	}
	at := map[string]objects.ID{}
	for _, r := range have {
		at[r.Name] = r.Target
	}
	b := objects.Batch{Note: objects.Note{Time: time.Now(), Command: "recover"}}
	rand.Read(b.Note.Group[:])
	for name, id := range targets {
		if at[name] != id {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: at[name], New: id})
		}
	}
	for name, id := range at {
		if _, ok := targets[name]; !ok {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: id})
		}
	}
	if len(b.Refs) == 0 {
		return nil
	}
	slices.SortFunc(b.Refs, func(x, y objects.RefUpdate) int { return strings.Compare(x.Name, y.Name) })
	return w.target.Apply(w.ctx, b)
}
