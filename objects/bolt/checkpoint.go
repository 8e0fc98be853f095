package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// checkpoint writes what is in the journal, more, and what is hauled, into the file with
// one transaction. From then on the journal begins anew: the file names the next
// generation, and frames of this one do not count. The caller may write to the files. An
// error that is not an unknown outcome says that nothing was written.
func (s *store) checkpoint(h *handle, more []change, hauled ...objects.Object) error {
	if h.before != nil { // see moment
		_ = s.await(context.Background(), func() bool { return h.before.looks == 0 })
	}
	own, bound := len(more)+len(hauled) > 0, h.journal.bound
	bound.gen, bound.seq = bound.gen+1, h.journal.over.seq
	if own {
		bound.seq++
	}
	list, err := s.changes(h, bound, more, hauled)
	if err != nil {
		return s.explain("write", err)
	}
	err = s.transact(h, list)
	for end := time.Now().Add(s.wait); own && errors.Is(err, errHeld) && !h.broken.Load() && time.Now().Before(end); {
		time.Sleep(maxPoll) // somebody waits for this one
		err = s.transact(h, list)
	}
	now, err := s.settle(h, err)
	if err != nil {
		if !errors.Is(err, errHeld) {
			h.broken.Store(true) // a frame of this generation may not count any more
		}
		return err
	}
	recycleBodies(list)
	h.journal.bound = bound
	s.mu.Lock()
	h.before, h.now = h.now, &moment{meta: now}
	h.journal.over = newOverlay(bound)
	h.seen, s.over = h.journal.over.now(), h.journal.over
	s.mu.Unlock()
	if h.planner != nil {
		h.planner.renew()
	}
	h.acknowledge()
	return nil
}

// changes returns all that a checkpoint writes, once it is sure that bbolt can write it.
func (s *store) changes(h *handle, bound binding, more []change, hauled []objects.Object) (list []change, err error) {
	over, seen := h.journal.over, h.journal.over.now()
	l := newLook(h.file, h.now.meta)
	l.number = h.number
	err = protect(func() error {
		records := over.objects(seen)
		list = append(over.changes(seen), over.recents(l, seen)...)
		for _, c := range more {
			if c.bucket == objectsBucket {
				records = append(records, edit{key: c.key, value: c.value})
			} else {
				list = append(list, c)
			}
		}
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
		return nil, err
	}
	list = inOrder(list, func(a, b *change) int {
		if a.bucket != b.bucket {
			return cmp.Compare(a.bucket, b.bucket)
		}
		return bytes.Compare(a.key, b.key)
	})
	list = append(list, change{metaBucket, journalKey, bound.encode()})
	err = protect(func() error { return checkPaths(l, list) })
	if err == nil {
		err = protect(func() error { return page.CheckFreelist(h.file, h.now.meta) })
	}
	return list, err
}

// settle finds out what a transaction has come to. Its error leaves it open only
// when the new meta page can be seen: then it need not be on the disk.
func (s *store) settle(h *handle, err error) (page.Meta, error) {
	now, unread := h.readMeta()
	if err != nil {
		if err = s.explain("write", err); unread != nil || now.Tx > h.now.meta.Tx {
			return now, objects.Unknown(err)
		}
		return now, err
	}
	if unread != nil {
		return now, objects.Unknown(s.explain("write", unread))
	}
	return now, nil
}

// checkPaths checks every page that bbolt will read or rewrite for a list of changes.
func checkPaths(l *look, list []change) error {
	sound := map[uint64]bool{}
	for _, name := range buckets {
		if err := l.pages.CheckPath(l.pages.Root(), []byte(name), sound); err != nil {
			return err
		}
	}
	for _, c := range list {
		t, err := l.bucket(c.bucket)
		if err == nil {
			err = l.pages.CheckPath(t, c.key, sound)
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
	size := mapped(f, list)
	if err := checkMapSize(s.path, size, s.mapMost); err != nil {
		_ = f.Close()
		return err
	}
	if err := filelock.Unlock(h.file); err != nil { // bbolt takes the lock of the file
		_ = f.Close()
		return err
	}
	defer func() {
		if free, e := filelock.Lock(h.file, false, false); !free || e != nil {
			h.broken.Store(true) // what a stranger does now is not seen
		}
	}()
	var db *bbolt.DB
	err = protect(func() (err error) {
		db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
			InitialMmapSize: int(size), Timeout: time.Nanosecond, FreelistType: bbolt.FreelistArrayType, NoStatistics: true,
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
func mapped(f *os.File, list []change) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0 // bbolt will say it too
	}
	n := int64(64 << 10)
	for _, c := range list {
		n += int64(len(c.key) + len(c.value))
	}
	return info.Size() + n + n/4
}

// mapLimit returns the size of the largest file that bbolt can map where an int has so
// many bits.
func mapLimit(intSize int) int64 {
	if intSize == 32 {
		return 1<<31 - 1
	}
	return math.MaxInt64
}

// checkMapSize refuses to write a file that bbolt could not map. Reading it goes on:
// this package does not map it for that.
func checkMapSize(path string, size, limit int64) error {
	if size <= limit {
		return nil
	}
	return fmt.Errorf("write store %s: it needs %d MiB, and a 32-bit program writes stores of up to %d MiB: %w: use a 64-bit tract",
		path, size>>20, (limit+1)>>20, objects.ErrReadOnly)
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
			return fmt.Errorf("%w: %q", page.ErrNoBucket, c.bucket)
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
