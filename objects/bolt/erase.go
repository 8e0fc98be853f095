package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// A tombstone lies among the objects that lie for themselves, and where their kind
// would be it has a zero:
//
//	objects  id -> 0, sealed objects.Tombstone.Record
//
// A store that has one is of format 7. It stays that.

const tombstone = 0

func encodeTombstone(t objects.Tombstone) []byte {
	return append([]byte{tombstone}, seal(t.ID[:], t.Record())...)
}

func isTombstone(value []byte) bool { return len(value) > 0 && value[0] == tombstone }

// decodeTombstone gives a tombstone as what it is to who reads: an ErasedError.
func decodeTombstone(id objects.ID, value []byte) error {
	record, err := unseal(id[:], value[1:])
	if err != nil {
		return &objects.CorruptError{ID: id, Cause: fmt.Errorf("tombstone: %w", err)}
	}
	t, err := objects.ParseTombstone(id, record)
	if err != nil {
		return err
	}
	return &objects.PurgedError{Tombstone: t}
}

// Purge is objects.Maintainer. It is a sweep that takes nothing but the bytes of these
// objects: a new file is written, in which they never were, and then takes the name
// of the old one. The journal, which stays, is overwritten first.
func (s *store) Purge(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (erased int, err error) {
	if s.readOnly {
		return 0, fmt.Errorf("erase in store %s: %w", s.path, objects.ErrReadOnly)
	}
	for range patience {
		if erased, err = s.erase(ctx, list, progress); !errors.Is(err, errReplaced) {
			break
		}
	}
	return erased, err
}

func (s *store) erase(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (int, error) {
	var w *sweeper
	var part *compaction
	if err := s.tidy(ctx, "erase in", true); err != nil {
		return 0, err
	}
	err := s.steadily(ctx, "erase in", progress, func(h *steady) (err error) {
		part.discard() // of a try that took too long
		part, w = nil, newSweeper(objects.Sweep{})
		w.op = "erase in"
		for _, t := range list {
			w.erase[t.ID] = &grave{Tombstone: t}
		}
		if err := w.look(s, h); err != nil {
			return err
		}
		if err := w.checkGraves(); err != nil || len(w.erase) == 0 {
			return err
		}
		part, err = s.compact(h, w)
		return err
	})
	defer func() { part.discard() }()
	if err != nil || part == nil {
		return 0, err
	}
	var old *os.File
	if renamesOpen {
		if old, err = s.policy.Open(s.path, os.O_RDWR, 0); err != nil {
			return 0, s.explain("erase in", err)
		}
		defer func() { _ = old.Close() }()
	}
	if err := s.explain("erase in", s.exchange(ctx, w, part)); err != nil {
		return 0, err
	}
	overwrite(old)
	return len(w.erase), nil
}

// overwrite leaves nothing of a file that has lost its name, for who reads the disk
// below the file system. It is more than is promised: many disks write elsewhere. A file
// that has another name is a copy that somebody wanted, and one that is locked is read.
func overwrite(f *os.File) {
	if f == nil {
		return
	}
	info, err := f.Stat()
	if err != nil || !nameless(info) {
		return
	}
	if free, err := filelock.Lock(f, true, false); !free || err != nil {
		return
	}
	zeros := make([]byte, copyStep)
	for at := int64(0); at < info.Size(); at += copyStep {
		if _, err := f.WriteAt(zeros[:min(copyStep, info.Size()-at)], at); err != nil {
			return
		}
	}
	_ = f.Sync()
}

// grave is an object that is to be erased.
type grave struct {
	objects.Tombstone
	found bool
	err   error
}

// foundGrave notes what kind of object is to be erased.
func (w *sweeper) foundGrave(o objects.Object) {
	if g := w.erase[o.ID]; g != nil && !g.found {
		g.found = true
		g.Tombstone, g.err = g.Complete(o)
	}
}

// foundTombstone takes in an object that is erased already.
func (w *sweeper) foundTombstone(t objects.Tombstone) {
	delete(w.erase, t.ID)
	n := w.number(t.ID)
	w.nodes[n] = swept{seen: true, erased: true, edges: int64(len(w.edges))}
}

// checkGraves refuses to erase what may not be, and what nobody knows.
func (w *sweeper) checkGraves() error {
	for id, g := range w.erase {
		switch {
		case g.err != nil:
			return g.err
		case !g.found && g.Kind == 0:
			return &objects.NotFoundError{ID: id}
		}
	}
	return nil
}

// bury writes the new tombstones.
func (c *compaction) bury(_ *look, w *sweeper) error {
	for id, g := range w.erase {
		if err := c.add(setKey(objectsBucket, bytes.Clone(id[:]), encodeTombstone(g.Tombstone))); err != nil {
			return err
		}
		c.kept++
	}
	return nil
}

// unbury gives the changes that take tombstones away, of objects that are put again
// and will lie in a pack. list is in the file, not in the journal.
func (l *look) unbury(list []objects.Object) (changes []journal.Change, err error) {
	version, err := l.version()
	if err != nil || version < formatErased {
		return nil, err
	}
	for i := range list {
		id := list[i].ID
		value, err := l.get(objectsBucket, id[:])
		if err != nil {
			return nil, err
		}
		if isTombstone(value) {
			changes = append(changes, deleteKey(objectsBucket, bytes.Clone(id[:])))
		}
	}
	return changes, nil
}

// erasures grows when the file is another than it was: objects may have been erased.
func (s *store) erasures() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

// noteFile notes which file it is, and gives it a number. The system may say of a file
// that it is one that was there before the last, whose place on the disk it has: how many
// there were tells them apart.
func (s *store) noteFile(info os.FileInfo, before uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.before != before || !os.SameFile(s.file, info) {
		s.file, s.before = info, before
		s.files++
	}
	return s.files
}

// kindOfErased gives the kind of an object that was erased, as a record begins with it.
func kindOfErased(e page.Entry) ([]byte, error) {
	value, err := e.Value()
	if err != nil {
		return nil, err
	}
	err = decodeTombstone(objects.ID(e.Key), value)
	if t := (*objects.PurgedError)(nil); errors.As(err, &t) {
		return []byte{byte(t.Kind)}, nil
	}
	return nil, err
}
