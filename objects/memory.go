package objects

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory returns a store that lives as long as the process: the engine "mem:".
func Memory() Store {
	return Verify(&memory{objects: map[ID]Object{}, tombstones: map[ID]Tombstone{}, refs: map[string]Ref{}, newest: map[string]ID{}, moved: make(chan struct{})})
}

type memory struct {
	mu         sync.RWMutex
	closed     bool
	objects    map[ID]Object
	tombstones map[ID]Tombstone
	refs       map[string]Ref
	log        []LogEntry
	newest     map[string]ID // ref name -> hash of the newest entry that moves it
	moved      chan struct{} // closed at the next move of a ref

	updates Updates
}

func (m *memory) read(f func()) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	f()
	return nil
}

func (m *memory) get(id ID) (obj Object, err error) {
	var found, purged bool
	var left Tombstone
	err = m.read(func() { obj, found = m.objects[id]; left, purged = m.tombstones[id] })
	switch {
	case err != nil:
		return Object{}, err
	case purged:
		return Object{ID: id}, &PurgedError{left}
	case !found:
		return Object{}, &NotFoundError{ID: id}
	}
	return obj.Clone(), nil
}

func (m *memory) Get(ctx context.Context, ids []ID) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, id := range Unique(ids) {
			obj, err := m.get(id)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if e := ctx.Err(); e != nil {
				err = e
			}
			if !yield(obj, err) || err != nil && !isCorruptOrPurged(err) {
				return
			}
		}
	}
}

func (m *memory) Missing(ctx context.Context, ids []ID) (missing []ID, err error) {
	err = m.read(func() {
		for _, id := range ids {
			if _, purged := m.tombstones[id]; !purged && m.objects[id].Kind == 0 {
				missing = append(missing, id)
			}
		}
	})
	return missing, cmp.Or(err, ctx.Err())
}

func (m *memory) Find(ctx context.Context, kind Kind, prefix string, limit int) (ids []ID, err error) {
	prefix = strings.ToLower(prefix)
	add := func(id ID, of Kind) {
		if (kind == 0 || of == kind) && strings.HasPrefix(hex.EncodeToString(id[:]), prefix) {
			ids = append(ids, id)
		}
	}
	err = m.read(func() {
		for id, obj := range m.objects {
			add(id, obj.Kind)
		}
		for id, left := range m.tombstones {
			add(id, left.Kind)
		}
	})
	slices.SortFunc(ids, ID.Compare)
	if limit > 0 && len(ids) > limit {
		ids = ids[:limit]
	}
	return ids, cmp.Or(err, ctx.Err())
}

func (m *memory) Chain(ctx context.Context, tip ID, o ChainOptions) iter.Seq2[Object, error] {
	return Walk(ctx, m.get, tip, o)
}

func (m *memory) GetRefs(ctx context.Context, names ...string) (refs []Ref, err error) {
	err = m.read(func() {
		for _, name := range names {
			if r, ok := m.refs[name]; ok {
				refs = append(refs, r)
			}
		}
	})
	return refs, cmp.Or(err, ctx.Err())
}

func (m *memory) Refs(ctx context.Context, q RefQuery) (refs []Ref, err error) {
	err = m.read(func() {
		for name, r := range m.refs {
			if strings.HasPrefix(name, q.Prefix) && name > q.After {
				refs = append(refs, r)
			}
		}
	})
	slices.SortFunc(refs, func(a, b Ref) int {
		if q.Newest {
			if c := b.Updated.Compare(a.Updated); c != 0 {
				return c
			}
		}
		return strings.Compare(a.Name, b.Name)
	})
	if q.Limit > 0 && len(refs) > q.Limit {
		refs = refs[:q.Limit]
	}
	return refs, cmp.Or(err, ctx.Err())
}

func (m *memory) Log(ctx context.Context, name string, before uint64, limit int) (entries []LogEntry, err error) {
	err = m.read(func() {
		for i := len(m.log) - 1; i >= 0; i-- {
			if limit > 0 && len(entries) == limit {
				return
			}
			e := m.log[i]
			if (before == 0 || e.Seq < before) && (name == "" || slices.ContainsFunc(e.Refs, func(u RefUpdate) bool { return u.Name == name })) {
				entries = append(entries, e)
			}
		}
	})
	return entries, cmp.Or(err, ctx.Err())
}

func (m *memory) Apply(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	moves, err := PendingUpdates(b.Refs, func(name string) (ID, error) { return m.refs[name].Target, nil })
	if err != nil {
		return err
	}
	for _, o := range b.Put {
		_, there := m.objects[o.ID]
		if _, purged := m.tombstones[o.ID]; !there && (!purged || !b.Copies) {
			m.objects[o.ID] = o.Clone()
			delete(m.tombstones, o.ID)
		}
	}
	if len(moves) == 0 {
		return nil
	}
	moves = slices.Clone(moves)
	for i := range moves {
		moves[i].Prev = m.newest[moves[i].Name]
	}
	m.applyEntry(NewLogEntry(m.lastSeq()+1, b.Note, moves))
	return nil
}

func (m *memory) lastSeq() (n uint64) {
	if len(m.log) > 0 {
		n = m.log[len(m.log)-1].Seq
	}
	return n
}

// applyEntry appends an entry to the log and moves the refs as it says. mu is held.
func (m *memory) applyEntry(entry LogEntry) {
	m.log = append(m.log, entry)
	for _, u := range entry.Refs {
		m.newest[u.Name] = entry.Hash
		if u.New.IsZero() {
			delete(m.refs, u.Name)
			continue
		}
		m.refs[u.Name] = Ref{Name: u.Name, Target: u.New, Version: m.refs[u.Name].Version + 1, Updated: entry.Note.Time}
	}
	close(m.moved)
	m.moved = make(chan struct{})
}

// Audit is Maintainer.
func (m *memory) Audit(ctx context.Context, a Audit) error { return AuditStore(ctx, m, a) }

// Copy is Maintainer.
func (*memory) Copy(context.Context, string, func(done, total int64)) error {
	return fmt.Errorf("copy a store in memory: %w", errors.ErrUnsupported)
}

// Restore is Maintainer.
func (m *memory) Restore(ctx context.Context, list []LogEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range list {
		if m.closed {
			return ErrClosed
		}
		err := e.Follows(m.lastSeq(), func(name string) (target, newest ID, err error) { return m.refs[name].Target, m.newest[name], nil })
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		m.applyEntry(NewLogEntry(e.Seq, e.Note, slices.Clone(e.Refs)))
	}
	return nil
}

// Sweep is Maintainer.
func (*memory) Sweep(context.Context, Sweep) (Swept, error) {
	return Swept{}, fmt.Errorf("sweep a store in memory: %w", errors.ErrUnsupported)
}

// Size is Maintainer.
func (*memory) Size(context.Context) (string, int64, error) {
	return "", 0, fmt.Errorf("measure a store in memory: %w", errors.ErrUnsupported)
}

// Leftovers is Maintainer.
func (*memory) Leftovers(context.Context) ([]string, error) { return nil, nil }

// Purge is Maintainer.
func (m *memory) Purge(ctx context.Context, list []Tombstone, _ func(done, total int64)) (purged int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrClosed
	}
	left := map[ID]Tombstone{}
	for _, t := range list {
		if _, before := m.tombstones[t.ID]; before {
			continue
		}
		o, ok := m.objects[t.ID]
		switch {
		case ok:
			if t, err = t.Complete(o); err != nil {
				return 0, err
			}
		case t.Kind == 0:
			return 0, &NotFoundError{ID: t.ID}
		}
		left[t.ID] = t
	}
	for id, t := range left {
		delete(m.objects, id)
		m.tombstones[id] = t
	}
	return len(left), nil
}

func (m *memory) Update(ctx context.Context, ref string, f func(tip ID) (Batch, error)) error {
	return m.updates.Run(ctx, m, ref, f)
}

func (m *memory) Watch(ctx context.Context, name string) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		for last, first := (Ref{}), true; ; first = false {
			var now Ref
			var moved chan struct{}
			if err := m.read(func() { now, moved = m.refs[name], m.moved }); err != nil {
				yield(Ref{Name: name}, err)
				return
			}
			if now.Name = name; first || now != last {
				if !yield(now, nil) {
					return
				}
				last = now
			}
			select {
			case <-moved:
			case <-ctx.Done():
				yield(Ref{Name: name}, ctx.Err())
				return
			}
		}
	}
}

func (m *memory) Close() error {
	defer m.updates.Stop()()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	close(m.moved)
	m.moved = make(chan struct{})
	return nil
}

// utcMillis returns the precision at which a store keeps time.
func utcMillis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
