package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/check"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// slice is how long the lock is held at a time while the pages of a snapshot are read.
const slice = 100 * time.Millisecond

// stopError ends reading, whatever the file contains: it was cancelled, the locks were not acquired again, or pages were overwritten.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// fileSnapshot is the files of a store at one moment, while others write to them. bbolt does
// not overwrite pages that were in use before the last transaction but one, and the journal
// is read into memory at once, so the lock is held only in slices. What never changes is read
// later, in views. It is for one goroutine.
type fileSnapshot struct {
	store      *store
	ctx        context.Context //nolint:containedctx // it is one call, and an io.ReaderAt
	yieldsLock bool            // the lock is released between slices

	file      *os.File
	inViews   bool // the lock was released: only views read what is in the file now
	exclusive bool // nobody else writes to the file
	lock      *ticketLock
	lockedAt  time.Time // when the lock was taken
	size      int64
	meta      page.Meta
	metaErr   error // damage of the meta pages
	readable  bool  // meta is one of them
	bound     journal.Binding
	boundErr  error

	journal    []byte
	journalErr error
	anchor     []byte

	read, reported int64 // bytes
	progress       func(done, total int64)
}

// withOwnHandles returns the store as another process opens it, with its own handles: a long operation
// waits for the lock like another process and delays no call of this one.
func (s *store) withOwnHandles() *store {
	return &store{
		path: s.path, wait: s.wait, readOnly: s.readOnly, policy: s.policy, checkpointLength: s.checkpointLength, maxMapSize: s.maxMapSize,
		changed: make(chan struct{}), tickets: map[bool]*ticketRequest{}, moved: make(chan struct{}),
	}
}

// openSnapshot opens the files and reads what changes. With yieldLock the snapshot releases the lock
// between slices.
func (s *store) openSnapshot(ctx context.Context, yieldLock bool, progress func(done, total int64)) (*fileSnapshot, error) {
	if err := s.checkPath(); err != nil {
		return nil, err
	}
	file, err := s.policy.Open(s.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	h := &fileSnapshot{store: s.withOwnHandles(), ctx: ctx, yieldsLock: yieldLock, progress: progress, file: file}
	if err = h.acquireLocks(); err == nil {
		err = h.readState()
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// acquireLocks acquires the locks that keep writers out. Without lock files nobody has the store
// open, and none are created. If another file has the name of the store now, that is errReplaced.
func (h *fileSnapshot) acquireLocks() (err error) {
	waiting, cancel := context.WithTimeout(h.ctx, h.store.wait)
	defer cancel()
	if exists(ticketPath(h.store.path)) && exists(gatePath(h.store.path)) {
		h.lock, err = h.store.lockShared(waiting)
	}
	if err == nil {
		pathInfo, e := os.Stat(h.store.path)
		openInfo, err2 := h.file.Stat()
		if e == nil && err2 == nil && !os.SameFile(pathInfo, openInfo) {
			return errReplaced
		}
		err = pollLock(waiting, h.file, false)
	}
	if errors.Is(err, context.DeadlineExceeded) && h.ctx.Err() == nil {
		err = h.store.busyError("check")
	}
	h.lockedAt = time.Now()
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readState reads the meta pages, the journal and the anchor.
func (h *fileSnapshot) readState() error {
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	h.size, h.readable = info.Size(), true
	if h.meta, h.metaErr = page.ReadMeta(h.file, h.size); errors.Is(h.metaErr, objects.ErrFormat) {
		return fmt.Errorf("open store %s: %w", h.store.path, h.metaErr)
	} else if h.metaErr != nil {
		h.yieldsLock = false // later changes could not be noticed
		h.meta, h.readable = check.BetterMeta(h.file, h.size)
	}
	if h.readable {
		// Valid records of a newer format would be reported as damage.
		l := newSnapshot(h.file, h.meta)
		if version, err := l.version(); err == nil {
			if err := h.store.checkFormat(version); err != nil {
				return err
			}
		}
		h.bound, h.boundErr = l.binding()
	}
	h.journal, h.journalErr = h.store.policy.Read(journalPath(h.store.path), maxJournalFile)
	h.anchor, _ = h.store.policy.Read(gatePath(h.store.path), maxJournalFile) // an unreadable one counts as missing
	return nil
}

// maxJournalFile is larger than any journal.
const maxJournalFile = 64 << 20

// ReadAt reads the file.
func (h *fileSnapshot) ReadAt(b []byte, at int64) (int, error) {
	err := h.ctx.Err()
	if err == nil && h.yieldsLock && !h.inViews && time.Since(h.lockedAt) > slice {
		err = h.reacquireLocks()
	}
	if err != nil {
		return 0, stopError{err}
	}
	n, err := h.file.ReadAt(b, at)
	if h.read += int64(n); h.progress != nil && h.read-h.reported > 1<<20 {
		h.reported = h.read
		h.progress(min(h.read, h.size), h.size)
	}
	return n, err
}

// reacquireLocks releases the locks and acquires them again, so that waiting writers get in, and checks that the
// pages are still intact.
func (h *fileSnapshot) reacquireLocks() error {
	h.releaseLocks()
	if err := h.acquireLocks(); err != nil {
		return err
	}
	return h.checkNotOverwritten()
}

func (h *fileSnapshot) checkNotOverwritten() error {
	if now, err := readMeta(h.file); err != nil || now.Tx > h.meta.Tx+1 {
		return errReplaced
	}
	return nil
}

// switchToViews checks that no page read so far was overwritten, and releases the locks. From then on
// the file is read in views.
func (h *fileSnapshot) switchToViews() error {
	if h.exclusive || h.metaErr != nil {
		return nil //nolint:nilerr // the audit reports the damage
	}
	err := h.checkNotOverwritten()
	h.releaseLocks()
	h.inViews = true
	return err
}

// view calls f with the present state of the file, without the journal, while writers wait.
// Before switchToViews, that is the state of the snapshot.
func (h *fileSnapshot) view(f func(m page.Meta) error) error {
	if !h.inViews {
		return f(h.meta)
	}
	if err := h.acquireLocks(); err != nil {
		return err
	}
	defer h.releaseLocks()
	m, err := readMeta(h.file)
	if err != nil {
		return errReplaced // the next try reports it
	}
	if bound, _ := newSnapshot(h.file, m).binding(); bound.File != h.bound.File {
		return errReplaced // content was purged
	}
	return f(m)
}

// releaseLocks lets writers go on.
func (h *fileSnapshot) releaseLocks() {
	_ = filelock.Unlock(h.file)
	h.lock.release()
	h.lock = nil
}

func (h *fileSnapshot) close() {
	h.releaseLocks()
	_ = h.file.Close()
}

// maxTries is how often an operation is tried while others write.
const maxTries = 3

// retryOnFileSnapshot calls attempt with a snapshot of the files. If pages of it were overwritten
// meanwhile, it tries again, and the last time it holds the lock until attempt returns or switches to views.
func (s *store) retryOnFileSnapshot(ctx context.Context, op string, progress func(done, total int64), attempt func(*fileSnapshot) error) error {
	for try := 1; ; try++ {
		h, err := s.openSnapshot(ctx, try <= maxTries, progress)
		if err == nil {
			err = attempt(h)
			if err == nil && h.yieldsLock && !h.inViews {
				err = h.reacquireLocks() // nothing that was read had been overwritten
			}
			h.close()
		}
		switch {
		case !errors.Is(err, errReplaced):
			return s.explain(op, err)
		case try > maxTries:
			return fmt.Errorf("%s store %s: %w: %w: try again", op, s.path, err, objects.ErrBusy)
		}
	}
}
