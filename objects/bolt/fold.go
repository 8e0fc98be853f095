package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tract-vcs/tract/objects"
)

// folding is one way of the journal into the file.
type folding struct {
	over  *overlay
	seen  mark    // what of it goes into the file
	bound binding // what the file says of the journal from then on
	asked bool    // somebody waits for it
	more  []change
	haul  []objects.Object
	meta  meta          // of the file when it is done
	done  chan struct{} // closed when meta or err says how it went
	err   error
}

// fold writes what is in the journal, more, and what is hauled, into the file with one
// transaction. From then on the journal begins anew: the file names the next generation, and frames
// of this one do not count. Nobody writes meanwhile. The error says whether it is known
// that nothing was written.
func (s *store) fold(h *handle, more []change, hauled ...objects.Object) error {
	asked := len(more)+len(hauled) > 0
	if h.folding != nil {
		<-h.folding.done
		if err := s.adopt(h); err != nil && !asked {
			return err
		}
	}
	over, bound := h.journal.over, h.journal.bound
	bound.gen, bound.seq, bound.from = bound.gen+1, over.seq, 0
	if asked {
		bound.seq++
	}
	h.folding = &folding{
		over: over, seen: over.now(), bound: bound, asked: asked, more: more, haul: hauled, done: make(chan struct{}),
	}
	s.lay(h, h.folding)
	return s.adopt(h)
}

// foldBeside begins to write what is in the journal by now into the file, while others
// write on behind it: from then on the frames that count begin there.
func (s *store) foldBeside(w *writer) {
	h := w.h
	over, bound := h.journal.over, h.journal.bound
	bound.seq, bound.from = over.seq, over.end
	f := &folding{over: over, seen: over.now(), bound: bound, done: make(chan struct{})}
	h.folding = f
	go func() {
		s.lay(h, f)
		w.wake()
	}()
}

// lay does what takes long of a fold.
func (s *store) lay(h *handle, f *folding) {
	defer close(f.done)
	if h.before != nil { // see moment
		_ = s.await(context.Background(), func() bool { return h.before.looks == 0 })
	}
	list, err := s.changes(h, f)
	if err != nil {
		f.err = s.explain("write", err)
		return
	}
	err = s.transact(h, list)
	for end := time.Now().Add(s.wait); f.asked && errors.Is(err, errHeld) && !h.broken.Load() && time.Now().Before(end); {
		time.Sleep(maxPoll) // somebody waits for this one
		err = s.transact(h, list)
	}
	if err == nil {
		written(list)
	}
	if f.meta, f.err = s.settle(h, err); f.err != nil && !errors.Is(f.err, errHeld) {
		h.broken.Store(true) // a frame of this generation may not count any more
	}
}

// changes gives all that a fold writes, once it is sure that bbolt can write it.
func (s *store) changes(h *handle, f *folding) (list []change, err error) {
	l := newLook(h.file, h.now.meta)
	l.number, l.known = h.number, &s.known
	err = protect(func() error {
		records := f.over.objects(f.seen)
		list = append(f.over.changes(f.seen), f.over.recents(l, f.seen)...)
		for _, c := range f.more {
			if c.bucket == objectsBucket {
				records = append(records, edit{key: c.key, value: c.value})
			} else {
				list = append(list, c)
			}
		}
		packed, err := sealObjects(l, records, f.haul)
		list = append(list, packed...)
		if err == nil {
			packed, err = l.noteFold(packed, time.Now())
			list = append(list, packed...)
		}
		if err == nil {
			list, err = l.layLog(list)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	list = inOrder(list, func(a, b *change) int {
		if a.bucket != b.bucket {
			return cmp.Compare(a.bucket, b.bucket)
		}
		return bytes.Compare(a.key, b.key)
	})
	list = append(list, change{metaBucket, journalKey, f.bound.encode()})
	err = protect(func() error { return guard(l, list) })
	if err == nil {
		err = protect(func() error { return checkFreelist(h.file, h.now.meta) })
	}
	return list, err
}

// adopt goes on from what a fold has come to, which is done.
func (s *store) adopt(h *handle) error {
	f := h.folding
	if h.folding = nil; f.err != nil {
		return f.err
	}
	over := newOverlay(f.bound)
	if old := h.journal.over; f.bound.gen == old.gen {
		over.follow(old, f.seen) // what came meanwhile
	}
	h.journal.bound = f.bound
	s.mu.Lock()
	h.before, h.now = h.now, &moment{meta: f.meta}
	h.journal.over, h.seen = over, over.now()
	s.over = over
	s.mu.Unlock()
	if h.planner != nil {
		h.planner.renew()
	}
	h.acknowledge()
	return nil
}

// settle finds out what a transaction has come to. Its error leaves it open only
// when the new meta page can be seen: then it need not be on the disk.
func (s *store) settle(h *handle, err error) (meta, error) {
	now, unread := h.readMeta()
	if err != nil {
		if err = s.explain("write", err); unread != nil || now.tx > h.now.meta.tx {
			return now, objects.Unknown(err)
		}
		return now, err
	}
	if unread != nil {
		return now, objects.Unknown(s.explain("write", unread))
	}
	return now, nil
}

// guard checks every page that bbolt will read or rewrite for a list of changes.
func guard(l *look, list []change) error {
	seen := map[uint64]bool{}
	root := tree{root: l.meta.root}
	for _, name := range buckets {
		if err := l.guard(root, []byte(name), seen); err != nil {
			return err
		}
	}
	for _, c := range list {
		t, err := l.bucket(c.bucket)
		if err == nil {
			err = l.guard(t, c.key, seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errHeld says that a program has the file that knows nothing of the lock beside
// it, or may not take it.
var errHeld = errors.New("another program holds it")

// transact writes a list of changes with bbolt, which opens the file for itself.
func (s *store) transact(h *handle, list []change) (err error) {
	f, err := s.policy.Open(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unlockFile(h.file); err != nil { // bbolt takes the lock of the file
		_ = f.Close()
		return err
	}
	defer func() {
		if free, e := lockFile(h.file, false, false); !free || e != nil {
			h.broken.Store(true) // what a stranger does now is not seen
		}
	}()
	var db *bbolt.DB
	err = protect(func() (err error) {
		db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
			InitialMmapSize: mapped(f, list), Timeout: time.Nanosecond, FreelistType: bbolt.FreelistArrayType, NoStatistics: true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil },
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout): // bbolt has closed the file
		return fmt.Errorf("write store %s: %w: %w", s.path, errHeld, objects.ErrBusy)
	case err != nil:
		_ = f.Close()
		return err
	}
	if err = protect(func() error { return s.change(h, f, db, list) }); err != nil {
		// bbolt may hold its own locks for ever. The file goes at once, and with it
		// the lock; the map goes if bbolt lets it.
		_ = f.Close()
		go func() { _ = protect(db.Close) }()
		return err
	}
	return protect(db.Close)
}

// mapped is how much of the file to map for a list of changes: bbolt copies all that
// it holds when it has to map more.
func mapped(f *os.File, list []change) int {
	info, err := f.Stat()
	if err != nil {
		return 0 // bbolt will say it too
	}
	n := 64 << 10
	for _, c := range list {
		n += len(c.key) + len(c.value)
	}
	return int(info.Size()) + n + n/4
}

// change writes a list of changes, if the file is as it was seen.
func (s *store) change(h *handle, f *os.File, db *bbolt.DB, list []change) error {
	db.AllocSize = 0 // bbolt would make the file twice as long as it need be
	mine, err := h.file.Stat()
	if err != nil {
		return err
	}
	here, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := h.readMeta(); err != nil || now != h.now.meta || !os.SameFile(mine, here) {
		return fmt.Errorf("write store %s: another program has written to it: %w: try again", s.path, objects.ErrBusy)
	}
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, c := range list {
		b := tx.Bucket([]byte(c.bucket))
		if b == nil {
			return fmt.Errorf("%w: %q", errNoBucket, c.bucket)
		}
		switch c.bucket {
		case logBucket, movesBucket, headsBucket, bodiesBucket, indexBucket:
			b.FillPercent = 1 // their keys only ascend, those of moves for each ref
		}
		if c.value == nil {
			err = b.Delete(c.key)
		} else {
			err = b.Put(c.key, c.value)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}
