package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tract-vcs/tract/objects"
)

// fold writes what is in the journal, more, and what is hauled, into the file with
// one transaction. From then on the journal begins anew: the file names the next
// generation, and frames of this one do not count. The error says whether it is
// known that nothing was written.
func (s *store) fold(h *handle, more []change, hauled ...objects.Object) error {
	if h.before != nil { // see moment
		_ = s.await(context.Background(), func() bool { return h.before.looks == 0 })
	}
	bound := h.journal.bound
	bound.gen, bound.seq = bound.gen+1, h.journal.over.seq
	asked := len(more)+len(hauled) > 0
	if asked {
		bound.seq++
	}
	list, records := h.journal.over.changes(), h.journal.over.objects()
	for _, c := range more {
		if c.bucket == objectsBucket {
			records = append(records, edit{key: c.key, value: c.value})
		} else {
			list = append(list, c)
		}
	}
	l := newLook(h.file, h.now.meta)
	err := protect(func() error {
		packed, err := sealObjects(l, records, hauled)
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
		return s.explain("write", err)
	}
	slices.SortStableFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), bytes.Compare(a.key, b.key))
	})
	list = append(list, change{metaBucket, journalKey, bound.encode()})
	err = protect(func() error { return guard(l, list) })
	if err == nil {
		err = protect(func() error { return checkFreelist(h.file, h.now.meta) })
	}
	if err != nil {
		return s.explain("write", err)
	}
	err = s.transact(h, list)
	for end := time.Now().Add(s.wait); asked && errors.Is(err, errHeld) && !h.broken && time.Now().Before(end); {
		time.Sleep(maxPoll) // somebody waits for this one
		err = s.transact(h, list)
	}
	if err := s.settle(h, err); err != nil {
		h.broken = !errors.Is(err, errHeld) || h.broken // a frame of this generation may not count any more
		return err
	}
	h.journal.bound = bound
	over := newOverlay(bound.gen, bound.seq)
	s.mu.Lock()
	h.journal.over, h.seen, h.staged, h.pages = over, mark{}, newStaged(), nil
	s.over = over
	s.mu.Unlock()
	h.acknowledge()
	return nil
}

// settle finds out what a transaction has come to. Its error leaves it open only
// when the new meta page can be seen: then it need not be on the disk.
func (s *store) settle(h *handle, err error) error {
	now, unread := h.readMeta()
	if err != nil {
		if err = s.explain("write", err); unread != nil || now.tx > h.now.meta.tx {
			return objects.Unknown(err)
		}
		return err
	}
	if unread != nil {
		return objects.Unknown(s.explain("write", unread))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.before, h.now = h.now, &moment{meta: now}
	return nil
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
	f, err := os.OpenFile(s.path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return err
	}
	if err := unlockFile(h.file); err != nil { // bbolt takes the lock of the file
		_ = f.Close()
		return err
	}
	defer func() {
		if free, e := lockFile(h.file, false, false); !free || e != nil {
			h.broken = true // what a stranger does now is not seen
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
