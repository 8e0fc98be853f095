package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Sweep is objects.Maintainer. It finds out what to keep, writes that into a new file
// while others go on, and takes the lock only for what they have added meanwhile and
// for giving the new file the name of the old one. Whoever is interrupted before that
// leaves the store as it was.
func (s *store) Sweep(ctx context.Context, o objects.Sweep) (objects.Swept, error) {
	if s.readOnly && !o.Dry {
		return objects.Swept{}, fmt.Errorf("clean store %s: %w", s.path, objects.ErrReadOnly)
	}
	var w *sweeper
	var part *compaction
	if !o.Dry {
		if err := s.tidy(ctx, "clean", false); err != nil {
			return objects.Swept{}, err
		}
	}
	err := s.steadily(ctx, "clean", o.Progress, func(h *steady) (err error) {
		part.discard() // of a try that took too long
		w = newSweeper(o)
		if err := w.look(s, h); err != nil || o.Dry {
			return err
		}
		part, err = s.compact(h, w)
		return err
	})
	defer func() { part.discard() }()
	if err != nil {
		return objects.Swept{}, err
	}
	_, w.swept.SizeBefore, err = s.Size(ctx)
	if w.swept.SizeAfter = w.swept.SizeBefore; err != nil || o.Dry {
		return w.swept, err
	}
	if err := s.explain("clean", s.exchange(ctx, w, part)); err != nil {
		return objects.Swept{}, err
	}
	_, w.swept.SizeAfter, err = s.Size(ctx)
	return w.swept, err
}

// fate is what becomes of an object.
type fate uint8

const (
	fateGone fate = iota
	fateYoung
	fateKept
)

// sweeper decides what is kept.
type sweeper struct {
	o     objects.Sweep
	swept objects.Swept
	at    map[objects.ID]int32
	nodes []swept
	edges []int32
	roots []objects.ID
	alive []fate

	op    string
	erase map[objects.ID]*grave // what an Erase takes
}

// swept is one object: its edges are those before the edges of the next.
type swept struct {
	seen   bool
	erased bool // it is a tombstone
	pack   uint32
	size   int32
	edges  int64
	count  int32
}

func newSweeper(o objects.Sweep) *sweeper {
	return &sweeper{o: o, at: map[objects.ID]int32{}, roots: slices.Clone(o.Keep), op: "clean", erase: map[objects.ID]*grave{}}
}

func (w *sweeper) number(id objects.ID) int32 {
	n, ok := w.at[id]
	if !ok {
		n = int32(len(w.nodes))
		w.at[id] = n
		w.nodes = append(w.nodes, swept{})
	}
	return n
}

func (w *sweeper) add(o objects.Object, pack uint32) {
	n := w.number(o.ID)
	if w.nodes[n].seen {
		return
	}
	from := int64(len(w.edges))
	for _, ids := range [][]objects.ID{o.Parents, o.Links} {
		for _, id := range ids {
			w.edges = append(w.edges, w.number(id))
		}
	}
	w.nodes[n] = swept{true, false, pack, int32(len(o.Data)), from, int32(int64(len(w.edges)) - from)}
}

// look audits the store and decides.
func (w *sweeper) look(s *store, h *steady) error {
	a := &auditor{store: s, files: h, meta: h.meta}
	a.to = objects.Audit{
		Objects: func(list []objects.Object) error {
			for _, o := range list {
				w.add(o, a.told)
				w.foundGrave(o)
			}
			return nil
		},
		Tombstone: func(t objects.Tombstone) error { w.foundTombstone(t); return nil },
		Ref:       func(r objects.Ref) error { w.roots = append(w.roots, r.Target); return nil },
		Entry: func(e objects.LogEntry) error {
			for _, u := range e.Refs {
				w.roots = append(w.roots, u.Old, u.New)
			}
			return nil
		},
		Damage: func(d objects.Damage) error {
			if d.Harmless {
				return nil
			}
			return &objects.CorruptError{ID: d.ID, Cause: fmt.Errorf("%s: %s", d.Where, d.What)}
		},
	}
	a.prepare()
	if err := a.run(); err != nil {
		return err
	}
	value, err := newLook(h, h.meta).get(metaBucket, foldsKey)
	if err != nil {
		return err
	}
	folds, err := decodeFolds(value)
	if err != nil {
		return err
	}
	w.decide(packBefore(folds, w.o.Before), !w.o.Before.Before(time.Now()))
	return nil
}

// decide gives every object its fate. What lies in no pack has no age: it is as old as
// what leads to it, and what nothing leads to is young until everything is old.
func (w *sweeper) decide(old uint32, all bool) {
	w.alive = make([]fate, len(w.nodes))
	var roots, young []int32
	for _, id := range w.roots {
		if n, ok := w.at[id]; ok {
			roots = append(roots, n)
		}
	}
	led := make([]bool, len(w.nodes))
	for _, to := range w.edges {
		led[to] = true
	}
	for n := range w.nodes {
		at := &w.nodes[n]
		switch {
		case all || !at.seen:
		case at.pack == 0 && !led[n], at.pack > old:
			young = append(young, int32(n))
		}
	}
	w.mark(roots, fateKept)
	w.mark(young, fateYoung)
	for n := range w.nodes {
		if at := &w.nodes[n]; at.seen {
			switch w.alive[n] {
			case fateKept:
				w.swept.Kept++
			case fateYoung:
				w.swept.Young++
			default:
				w.swept.Removed++
				w.swept.RemovedBytes += int64(at.size)
			}
		}
	}
	for id, n := range w.at {
		if len(w.swept.Examples) < 10 && w.nodes[n].seen && w.alive[n] == fateGone {
			w.swept.Examples = append(w.swept.Examples, id)
		}
	}
	slices.SortFunc(w.swept.Examples, objects.ID.Compare)
}

// mark raises the fate of everything that some objects lead to.
func (w *sweeper) mark(todo []int32, f fate) {
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.alive[n] >= f {
			continue
		}
		w.alive[n] = f
		at := w.nodes[n]
		todo = append(todo, w.edges[at.edges:at.edges+int64(at.count)]...)
	}
}

func (w *sweeper) keeps(id objects.ID) bool {
	if w.erase[id] != nil {
		return false
	}
	n, ok := w.at[id]
	return !ok || w.alive[n] != fateGone
}

// errReplaced says that somebody else was faster with a new file.
var errReplaced = errors.New("another program has rewritten it")

// exchange adds to the new file what came meanwhile, and gives it the name of the old.
func (s *store) exchange(ctx context.Context, w *sweeper, part *compaction) error {
	t := s.twin()
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	h, err := t.openWrite(waiting)
	if err != nil {
		return t.waited(ctx, w.op, err)
	}
	t.open++
	defer t.shut(h)
	faster := fmt.Errorf("%s store %s: %w: %w: try again", w.op, s.path, errReplaced, objects.ErrBusy)
	if same, err := part.sameFile(h.file); err != nil || !same {
		return errors.Join(err, faster)
	}
	if err := t.checkpoint(h, nil); err != nil {
		return err
	}
	if len(w.erase) > 0 {
		if err := h.journal.Wipe(); err != nil {
			return err
		}
	}
	bound := h.journal.Binding
	bound.Generation, bound.File = bound.Generation+1, bound.File+1
	if err = part.catchUp(newLook(h.file, h.now.meta), w, bound); err == nil {
		err = ctx.Err()
	}
	if err == nil {
		_ = h.file.Close() // not every system gives the name of an open file away
		err = os.Rename(part.path, s.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return faster // it took the new file for one that was left
	}
	if err != nil {
		return err
	}
	if err := syncDir(dirOf(s.path)); err != nil {
		return err
	}
	h.restartJournal(bound)
	h.acknowledge() // the name is durable: no power failure brings the old file back
	h.journal.Discard()
	return nil
}

// resurrect finds what is to go and to which new objects or moves lead: somebody
// has put again what was there.
func (w *sweeper) resurrect(leading []objects.ID) (ids []objects.ID) {
	var todo []int32
	for _, id := range leading {
		if n, ok := w.at[id]; ok && w.alive[n] == fateGone {
			todo = append(todo, n)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	before := slices.Clone(w.alive)
	w.mark(todo, fateKept)
	for id, n := range w.at {
		if before[n] == fateGone && w.alive[n] != fateGone && w.nodes[n].seen {
			ids = append(ids, id)
		}
	}
	return ids
}
