package tract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Recovery is what [Recover] saved.
type Recovery struct {
	Objects int               // that are in the new store
	Erased  int               // of which it has the tombstone
	Lost    int               // that something in it leads to, and that are not
	Refs    int               // that are where they were
	Rescued map[string]string // refs whose target is lost -> name of what was saved of them; empty: nothing
	Entries int               // of the ref log
	Damages []objects.Damage  // of the old store
}

// Recover makes a new store at the path to of everything that is whole in the store
// at the path from, however damaged, and changes nothing there. Refs whose target is
// lost are under refs/rescued/ where they were last before. The folder to must not be
// there, and is only when all is done. progress may be nil. Of the options, [Files]
// counts, for the old store.
func Recover(ctx context.Context, from, to string, progress func(done, total int64), opts ...OpenOption) (*Recovery, error) {
	source, err := openDamaged(ctx, from, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	w := &recovery{ctx: ctx}
	err = inNewFolder(to, func(dir string) error {
		if w.target, err = objects.Open(ctx, dir, objects.Options{Create: true}); err != nil {
			return err
		}
		a := w.audit()
		a.Deep, a.Progress = true, progress
		err := audit(ctx, source, a)
		if err == nil {
			err = w.finish()
		}
		return errors.Join(err, w.target.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("recover %s: %w", from, err)
	}
	return &w.done, nil
}

// inNewFolder calls f with a folder that takes its name when f has done.
func inNewFolder(path string, f func(dir string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, objects.ErrExists)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // when it has its name it does nothing
	if err := f(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = d.Sync() // some systems know no such thing
	return d.Close()
}

// recovery is one Recover.
type recovery struct {
	ctx     context.Context //nolint:containedctx // it is one call
	target  objects.Store
	graph   *graph
	put     []objects.Object
	erased  []objects.Tombstone
	size    int
	refs    []objects.Ref
	entries []objects.LogEntry
	done    Recovery
}

// recoverBytes is how much is put at once.
const recoverBytes = 8 << 20

func (w *recovery) audit() objects.Audit {
	return objects.Audit{
		Begin: func(about int) error { // what was saved stays saved
			if w.graph == nil {
				w.graph = newGraph(about, func(objects.ID, error) error { return nil })
			}
			w.refs, w.entries, w.done.Damages = nil, nil, nil
			return nil
		},
		Objects: func(list []objects.Object) error { return w.graph.take(list, w.save) },
		Erased: func(t objects.Tombstone) error {
			if w.graph.bury(t) {
				w.erased = append(w.erased, t)
			}
			return nil
		},
		Ref:    func(r objects.Ref) error { w.refs = append(w.refs, r); return nil },
		Entry:  func(e objects.LogEntry) error { w.entries = append(w.entries, e); return nil },
		Damage: func(d objects.Damage) error { w.done.Damages = append(w.done.Damages, d); return nil },
	}
}

// save takes in an object that was not there yet.
func (w *recovery) save(o *objects.Object) error {
	w.done.Objects++
	if w.put, w.size = append(w.put, o.Clone()), w.size+len(o.Data)+100; w.size < recoverBytes {
		return nil
	}
	return w.flush()
}

func (w *recovery) flush() error {
	if len(w.put) == 0 {
		return nil
	}
	err := w.target.Apply(w.ctx, objects.Batch{Put: w.put, Copies: true})
	w.put, w.size = nil, 0
	return err
}

// finish writes the names, when all objects are there.
func (w *recovery) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.replay(); err != nil {
		return err
	}
	if err := w.bury(); err != nil {
		return err
	}
	want := w.want()
	if err := w.move(want); err != nil {
		return err
	}
	var roots []objects.ID
	for _, id := range want {
		roots = append(roots, id)
	}
	for n, reached := range w.graph.reach(roots) {
		if reached && w.graph.nodes[n].kind == 0 {
			w.done.Lost++
		}
	}
	return nil
}

// bury gives the new store the tombstones of objects that were found nowhere.
func (w *recovery) bury() error {
	w.erased = slices.DeleteFunc(w.erased, func(t objects.Tombstone) bool {
		n, _ := w.graph.find(t.ID)
		return !w.graph.nodes[n].erased
	})
	n, err := objects.Erase(w.ctx, w.target, w.erased, nil)
	w.done.Erased = n
	return err
}

// replay makes the log anew as far as it is whole: its entries get the hashes that
// they had.
func (w *recovery) replay() error {
	var last objects.LogEntry
	var list []objects.Batch
	for _, e := range w.entries {
		if e.Seq != last.Seq+1 || e.Prev != last.Hash || !refNames(e.Refs) {
			break
		}
		last = e
		list = append(list, objects.Batch{Refs: e.Refs, Note: e.Note})
	}
	w.done.Entries = len(list)
	if all, ok := objects.As[objects.Restorer](w.target); ok {
		return all.Restore(w.ctx, list)
	}
	for _, b := range list {
		if err := w.target.Apply(w.ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func refNames(moves []objects.RefUpdate) bool {
	return !slices.ContainsFunc(moves, func(u objects.RefUpdate) bool { return objects.CheckRefName(u.Name) != nil })
}

// want says where refs shall be.
func (w *recovery) want() map[string]objects.ID {
	want := map[string]objects.ID{}
	for _, r := range w.refs {
		if w.graph.has(r.Target) {
			want[r.Name] = r.Target
			w.done.Refs++
		}
	}
	w.done.Rescued = map[string]string{}
	for _, r := range w.refs {
		if _, ok := want[r.Name]; ok {
			continue
		}
		w.done.Rescued[r.Name] = ""
		for i := len(w.entries) - 1; i >= 0 && w.done.Rescued[r.Name] == ""; i-- {
			for _, u := range w.entries[i].Refs {
				if u.Name != r.Name {
					continue
				}
				if id := firstOf(w.whole, u.New, u.Old); !id.IsZero() {
					name := rescueName(r.Name, w.entries[i].Note.Time, want)
					want[name], w.done.Rescued[r.Name] = id, name
				}
			}
		}
	}
	w.unnamed(want)
	return want
}

// firstOf is the first of some ids of which something holds.
func firstOf(holds func(objects.ID) bool, ids ...objects.ID) objects.ID {
	for _, id := range ids {
		if holds(id) {
			return id
		}
	}
	return objects.ID{}
}

// rescueStamp is the last part of the name of a rescue ref.
const rescueStamp = "20060102T150405.000Z"

// rescueName is a name under refs/rescued/ that is free.
func rescueName(ref string, t time.Time, taken map[string]objects.ID) string {
	short := strings.TrimPrefix(strings.TrimPrefix(ref, refs.Heads), "refs/")
	for n := 0; ; n++ {
		name := refs.Rescued + short + "/" + t.Add(time.Duration(n)*time.Millisecond).UTC().Format(rescueStamp)
		if _, ok := taken[name]; !ok {
			return name
		}
	}
}

// whole tells whether a commit is there with all that it links to.
func (w *recovery) whole(id objects.ID) bool {
	n, ok := w.graph.find(id)
	if !ok || w.graph.nodes[n].kind == 0 {
		return false
	}
	return !slices.ContainsFunc(w.graph.out(n)[w.graph.nodes[n].parents:], func(to int32) bool { return w.graph.nodes[to].kind == 0 })
}

// unnamed gives names to the ends of histories that have none, when refs or entries of
// their log are lost: nobody can tell then which of them were branches.
func (w *recovery) unnamed(want map[string]objects.ID) {
	hurt := slices.ContainsFunc(w.done.Damages, func(d objects.Damage) bool { return !d.Harmless && d.ID.IsZero() })
	if !hurt && len(w.done.Rescued) == 0 {
		return
	}
	roots := slices.Collect(maps.Values(want))
	for _, e := range w.entries {
		for _, u := range e.Refs {
			roots = append(roots, u.New, u.Old)
		}
	}
	reached := w.graph.reach(roots)
	inside := make([]bool, len(w.graph.nodes))
	for n := range w.graph.nodes {
		for _, to := range w.graph.out(int32(n))[:w.graph.nodes[n].parents] {
			inside[to] = true
		}
	}
	for n, at := range w.graph.nodes {
		if at.kind == objects.KindCommit && !reached[n] && !inside[n] && w.whole(w.graph.ids.ID(int32(n))) {
			name := rescueName("lost/"+w.graph.ids.ID(int32(n)).Short(), time.UnixMilli(0), want)
			want[name], w.done.Rescued[name] = w.graph.ids.ID(int32(n)), name
		}
	}
}

// move brings the refs from where the log left them to where they shall be.
func (w *recovery) move(want map[string]objects.ID) error {
	have, err := w.target.Refs(w.ctx, objects.RefQuery{})
	if err != nil {
		return err
	}
	at := map[string]objects.ID{}
	for _, r := range have {
		at[r.Name] = r.Target
	}
	b := objects.Batch{Note: objects.Note{Time: time.Now(), Command: "recover", Group: operationOf(w.ctx).group}}
	for name, id := range want {
		if at[name] != id {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: at[name], New: id})
		}
	}
	for name, id := range at {
		if _, ok := want[name]; !ok {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: id})
		}
	}
	if len(b.Refs) == 0 {
		return nil
	}
	slices.SortFunc(b.Refs, func(x, y objects.RefUpdate) int { return strings.Compare(x.Name, y.Name) })
	return w.target.Apply(w.ctx, b)
}
