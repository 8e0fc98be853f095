package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// checkpoint moves what is planned up to a mark of the memtable into the file, with the objects of
// a bulk batch, in one bbolt transaction. The transaction also raises the generation of the
// journal, so that its frames stop counting and the next one is written at its start. The caller
// holds writer.commit. Unless the error is an unknown outcome, an error means that nothing was
// written.
func (s *store) checkpoint(h *handle, mark memtable.Mark, bulk ...objects.Object) error {
	if h.previousVersion != nil { // see fileVersion
		_ = s.await(context.Background(), func() bool { return h.previousVersion.readers == 0 })
	}
	unjournaled, bound := mark != h.mark || len(bulk) > 0, h.journal.Binding // a batch that is in no frame
	bound.Generation, bound.Sequence = bound.Generation+1, h.journal.Sequence
	if unjournaled {
		bound.Sequence++
	}
	list, err := s.checkpointChanges(h, bound, mark, bulk)
	if err != nil {
		return s.explain("write", err)
	}
	for end := time.Now().Add(s.wait); ; {
		err = s.commitChanges(h, bound, list)
		if !unjournaled || !errors.Is(err, errHeld) || h.broken.Load() || time.Now().After(end) {
			break
		}
		time.Sleep(maxPoll) // a call waits for this batch
	}
	if err != nil {
		return err
	}
	h.writeAnchor()
	return nil
}

// commitChanges writes changes in one transaction, after which the journal is empty. Errors are
// those of checkpoint.
func (s *store) commitChanges(h *handle, bound journal.Binding, list []journal.Change) error {
	now, err := s.transactionOutcome(h, s.transact(h, list))
	if err != nil {
		if !errors.Is(err, errHeld) {
			h.broken.Store(true) // a frame of this generation may not count any more
		}
		return err
	}
	w := h.planner
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.previousVersion, h.version = h.version, &fileVersion{meta: now}
	h.restartJournal(bound)
	if w != nil {
		w.resetPlannedSnapshot()
	}
	return nil
}

// commitPurge writes changes that are not in the journal, which is empty, and gives the file a
// new number, so that no reader uses what it knows of a pack.
func (s *store) commitPurge(h *handle, list []journal.Change) error {
	bound := h.journal.Binding
	bound.Generation, bound.File = bound.Generation+1, bound.File+1
	list = append(list, setKey(metaBucket, journalKey, encodeBinding(bound)))
	sortChanges(list)
	l := newSnapshot(h.file, h.version.meta)
	err := protect(func() error { return checkTouchedPages(l, list) })
	if err == nil {
		err = s.commitChanges(h, bound, list)
	}
	if err != nil {
		return err
	}
	h.fileNumber = s.updateFileNumber(h.fileInfo, bound.File)
	h.writeAnchor()
	return nil
}

// sortChanges sorts changes by bucket and key.
func sortChanges(list []journal.Change) {
	slices.SortStableFunc(list, func(a, b journal.Change) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Key, b.Key))
	})
}

// checkpointChanges returns the changes of a checkpoint, after it has checked the pages that bbolt will
// touch.
func (s *store) checkpointChanges(h *handle, bound journal.Binding, mark memtable.Mark, bulk []objects.Object) (list []journal.Change, err error) {
	l := newSnapshot(h.file, h.version.meta)
	l.fileNumber = h.fileNumber
	err = protect(func() error {
		list, err = packObjects(l, h.mem.All(objectsBucket, mark), bulk)
		if err != nil {
			return err
		}
		age, err := l.packAgeChange(lastPackIn(list), time.Now())
		if err != nil {
			return err
		}
		log, err := packLog(h.mem.Sorted(logBucket, mark))
		if err != nil {
			return err
		}
		list = slices.Concat(list, age, log)
		for _, bucket := range []int{refsBucket, recentBucket} {
			for _, e := range h.mem.Sorted(bucket, mark) {
				list = append(list, setKey(bucket, e.Key, e.Value))
			}
		}
		sortChanges(list)
		list = append(list, setKey(metaBucket, journalKey, encodeBinding(bound)))
		return checkTouchedPages(l, list)
	})
	return list, err
}

// transactionOutcome determines the outcome of a transaction. With an error the outcome is unknown only if
// the new meta page is there, which need not be durable.
func (s *store) transactionOutcome(h *handle, err error) (page.Meta, error) {
	now, unread := readMeta(h.file)
	if err != nil {
		if err = s.explain("write", err); unread != nil || now.Tx > h.version.meta.Tx {
			return now, objects.Unknown(err)
		}
		return now, err
	}
	if unread != nil {
		return now, objects.Unknown(s.explain("write", unread))
	}
	return now, nil
}

// checkTouchedPages checks every page that bbolt will read or rewrite for a list of changes, and the list
// of pages that it will take.
func checkTouchedPages(l *snapshot, list []journal.Change) error {
	if _, _, err := page.ReadFreelist(l.pages.File, l.pages.Meta); err != nil {
		return err
	}
	for _, name := range buckets {
		if err := l.pages.CheckPath(l.pages.Root(), []byte(name)); err != nil {
			return err
		}
	}
	for _, c := range list {
		t, err := l.bucket(c.Bucket)
		if err == nil {
			err = l.pages.CheckPath(t, c.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errHeld means that a program holds the lock of the file that does not use the ticket lock.
var errHeld = errors.New("another program holds it")

// transact writes changes with bbolt, which opens the file itself.
func (s *store) transact(h *handle, list []journal.Change) (err error) {
	f, err := s.policy.Open(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size := mapSizeFor(f, list)
	if err := checkMapSize(s.path, size, s.maxMapSize); err != nil {
		_ = f.Close()
		return err
	}
	if err := filelock.Unlock(h.file); err != nil { // bbolt takes the lock of the file
		_ = f.Close()
		return err
	}
	defer func() {
		if free, e := filelock.Lock(h.file, false, false); !free || e != nil {
			h.broken.Store(true) // what another program does now would not be noticed
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
	if err = protect(func() error { return s.writeChanges(h, f, db, list) }); err != nil {
		// bbolt may hold its own locks for ever. Closing the file releases the lock of
		// the file at once; the memory map goes if bbolt lets it.
		_ = f.Close()
		go func() { _ = protect(db.Close) }()
		return err
	}
	return protect(db.Close)
}

// mapSizeFor returns how much of the file to map before changes are written: bbolt copies everything that
// it holds when it has to map more.
func mapSizeFor(f *os.File, list []journal.Change) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0 // bbolt will report it
	}
	n := int64(64 << 10)
	for _, c := range list {
		n += int64(len(c.Key) + len(c.Value))
	}
	return info.Size() + n + n/4
}

// mapLimit returns the size of the largest file that bbolt can map if an int has that many
// bits.
func mapLimit(intSize int) int64 {
	if intSize == 32 {
		return 1<<31 - 1
	}
	return math.MaxInt64
}

// checkMapSize refuses to write a file that bbolt could not map. Reading does not map it.
func checkMapSize(path string, size, limit int64) error {
	if size <= limit {
		return nil
	}
	return fmt.Errorf("write store %s: it needs %d MiB, and a 32-bit program writes stores of up to %d MiB: %w: use a 64-bit tract",
		path, size>>20, (limit+1)>>20, objects.ErrReadOnly)
}

// writeChanges writes changes, if nobody else has written to the file.
func (s *store) writeChanges(h *handle, f *os.File, db *bbolt.DB, list []journal.Change) error {
	db.AllocSize = 0 // otherwise bbolt doubles the file
	openInfo, err := h.file.Stat()
	if err != nil {
		return err
	}
	pathInfo, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := readMeta(h.file); err != nil || now != h.version.meta || !os.SameFile(openInfo, pathInfo) {
		return fmt.Errorf("write store %s: another program has written to it: %w: try again", s.path, objects.ErrBusy)
	}
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := putChanges(tx, list, false); err != nil {
		return err
	}
	return tx.Commit()
}

// putChanges makes changes in a transaction. It fills the pages of buckets whose keys only ascend,
// and those of all buckets if fill is set.
func putChanges(tx *bbolt.Tx, list []journal.Change, fill bool) (err error) {
	for _, c := range list {
		b := tx.Bucket([]byte(buckets[c.Bucket]))
		if b == nil {
			return fmt.Errorf("%w: %q", page.ErrNoBucket, buckets[c.Bucket])
		}
		switch c.Bucket {
		case logBucket, movesBucket, headsBucket, bodiesBucket, indexBucket:
			b.FillPercent = 1 // their keys only ascend, those of moves for each ref
		}
		if fill {
			b.FillPercent = 1
		}
		if c.Value == nil {
			err = b.Delete(c.Key)
		} else {
			err = b.Put(c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
