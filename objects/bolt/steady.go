package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// slice is how long who reads the whole file keeps writers waiting at a time.
const slice = 100 * time.Millisecond

// errMoved says that so much was written while somebody read that the pages of the
// moment that was being read may have been written over.
var errMoved = errors.New("it was written to all the time")

// stopError is why reading cannot go on, whatever the file holds.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// steady is the files of a store as they were at one moment, while others go on
// writing. bbolt keeps the pages of a moment through the next transaction, and the
// journal is taken into memory at once, so that the lock need only be held now and
// then. It is for one goroutine.
type steady struct {
	store   *store
	ctx     context.Context //nolint:containedctx // it is one call, and an io.ReaderAt
	patient bool            // it may let go of the lock

	file     *os.File
	detached bool       // it holds no lock any more: what it reads may have been overwritten
	sealed   bool       // nobody else writes to the file
	again    sync.Mutex // held by who looks again
	side     *ticketLock
	since    time.Time // when the lock was taken
	size     int64
	meta     page.Meta
	heads    []byte // both meta pages
	metaErr  error  // what is wrong with the meta pages, of which meta may be the better one

	number     uint64 // see journal.Binding.File
	journal    []byte
	journalErr error
	anchor     []byte

	read     atomic.Int64
	told     int64
	progress func(done, total int64)
}

// twin is the same store as another process would see it: what takes long waits
// for the lock beside the others of this process and does not stand among them.
func (s *store) twin() *store {
	return &store{
		path: s.path, wait: s.wait, readOnly: s.readOnly, policy: s.policy, limit: s.limit, mapMost: s.mapMost,
		changed: make(chan struct{}), tickets: map[bool]*ticketRequest{}, moved: make(chan struct{}),
	}
}

// hold opens the files and takes in what changes at once. One that is patient lets
// others write in between.
func (s *store) hold(ctx context.Context, patient bool, progress func(done, total int64)) (*steady, error) {
	if err := s.checkPath(); err != nil {
		return nil, err
	}
	h := &steady{store: s.twin(), ctx: ctx, patient: patient, progress: progress}
	for {
		file, err := s.policy.Open(s.path, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		h.file = file
		if err = h.take(); err == nil {
			err = h.readState()
		}
		if err == nil {
			return h, nil
		}
		h.close()
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
	}
}

// replaced tells whether another file has the name by now.
func (h *steady) replaced() bool {
	here, err := os.Stat(h.store.path)
	mine, e := h.file.Stat()
	return err == nil && e == nil && !os.SameFile(here, mine)
}

// take takes the lock. Where there are no lock files nobody has the store open, and
// none are left behind.
func (h *steady) take() error {
	waiting, cancel := context.WithTimeout(h.ctx, h.store.wait)
	defer cancel()
	var err error
	if exists(turnPath(h.store.path)) && exists(gatePath(h.store.path)) {
		h.side, err = h.store.lock(waiting, false)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			h.side, err = nil, nil
		}
	}
	if err == nil && h.replaced() { // while it waited; the old file may be overwritten
		err = errReplaced
	}
	if err == nil {
		err = pollLock(waiting, h.file, false)
	}
	if errors.Is(err, context.DeadlineExceeded) && h.ctx.Err() == nil {
		err = h.store.busy("check")
	}
	h.since = time.Now()
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readState takes in the state of the files.
func (h *steady) readState() error {
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	h.size = info.Size()
	if h.meta, h.metaErr = page.ReadMeta(h.file, h.size); errors.Is(h.metaErr, objects.ErrFormat) {
		return fmt.Errorf("open store %s: %w", h.store.path, h.metaErr)
	} else if h.metaErr != nil {
		h.patient = false // nobody could tell whether it is still the same
	} else {
		h.heads = make([]byte, 2*h.meta.PageSize)
		if _, err := h.file.ReadAt(h.heads, 0); err != nil {
			return err
		}
		// What is right in a format that is not known here would be taken for damage.
		l := newSnapshot(h.file, h.meta)
		if version, err := l.version(); err == nil {
			if err := h.store.checkFormat(version); err != nil {
				return err
			}
		}
		if value, err := l.get(metaBucket, journalKey); err == nil {
			bound, _ := decodeBinding(value)
			h.number = bound.File
		}
	}
	h.journal, h.journalErr = h.store.policy.Read(journalPath(h.store.path), mostJournal)
	h.anchor, _ = h.store.policy.Read(gatePath(h.store.path), mostJournal) // one that cannot be read is none
	return nil
}

// mostJournal is more than a journal is ever long.
const mostJournal = 64 << 20

// ReadAt reads the file as it was.
func (h *steady) ReadAt(b []byte, at int64) (int, error) {
	err := h.ctx.Err()
	if err == nil && h.patient && !h.detached && time.Since(h.since) > slice {
		err = h.renew()
	}
	if err != nil {
		return 0, stopError{err}
	}
	n, err := h.file.ReadAt(b, at)
	if read := h.read.Add(int64(n)); h.progress != nil && read-h.told > 1<<20 {
		h.told = read
		h.progress(min(read, h.size), h.size)
	}
	return n, err
}

// beside is ReadAt in any goroutine, for who also reads with ReadAt: that lets others
// write, and whether what was read was still there is found out when it does next, or
// at the end.
func (h *steady) beside(b []byte, at int64) (int, error) {
	n, err := h.file.ReadAt(b, at)
	h.read.Add(int64(n))
	return n, err
}

// renew lets those in who wait, and looks whether what is read is still there.
func (h *steady) renew() error {
	h.release()
	err := h.take()
	if errors.Is(err, errReplaced) {
		return errMoved
	}
	if err != nil {
		return err
	}
	return h.unmoved()
}

func (h *steady) unmoved() error {
	mine, err := h.file.Stat()
	if err != nil {
		return err
	}
	now, err := page.ReadMeta(h.file, mine.Size())
	if err != nil || now.Tx > h.meta.Tx+1 {
		return errMoved
	}
	return nil
}

// detach lets go of the lock for good, if all that was read was still there. What is read
// from then on has checksums; where one is wrong, [steady.lookAgain] shows what is there now.
func (h *steady) detach() error {
	if h.sealed || h.metaErr != nil {
		return nil
	}
	err := h.unmoved()
	h.release()
	h.detached = true
	return err
}

// errRewritten says that content was purged or the file was replaced during an audit.
var errRewritten = errors.New("content of it was purged or it was packed meanwhile")

// lookAgain calls f with the file as it is now, without the journal, while writers wait. It
// may be called by any goroutine.
func (h *steady) lookAgain(f func(l *snapshot) error) error {
	h.again.Lock()
	defer h.again.Unlock()
	ctx, cancel := context.WithTimeout(h.ctx, h.store.wait)
	defer cancel()
	var side *ticketLock
	var err error
	if exists(turnPath(h.store.path)) && exists(gatePath(h.store.path)) {
		side, err = h.store.lock(ctx, false)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			side, err = nil, nil
		}
	}
	if err != nil {
		return stopError{err}
	}
	defer side.release()
	if h.replaced() {
		return stopError{errRewritten}
	}
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	m, err := page.ReadMeta(h.file, info.Size())
	if err != nil {
		return err
	}
	l := newSnapshot(h.file, m)
	value, err := l.get(metaBucket, journalKey)
	if err != nil {
		return err
	}
	bound, err := decodeBinding(value)
	if err == nil && bound.File != h.number {
		return stopError{errRewritten}
	}
	if err != nil {
		return err
	}
	return f(l)
}

func (h *steady) release() {
	_ = filelock.Unlock(h.file)
	h.side.release()
	h.side = nil
}

func (h *steady) close() {
	_ = h.file.Close()
	h.side.release()
	h.side = nil
}

// patience is how often somebody reads while others write, before they have to wait.
const patience = 3

// steadily calls f with the files as they are at one moment; again, when too much
// was written meanwhile, and at last with the writers waiting.
func (s *store) steadily(ctx context.Context, op string, progress func(done, total int64), f func(*steady) error) error {
	for try := 1; ; try++ {
		h, err := s.hold(ctx, try <= patience, progress)
		if err == nil {
			err = f(h)
			if err == nil && h.patient && !h.detached {
				err = h.renew() // all of it was read in time
			}
			h.close()
		}
		if !errors.Is(err, errMoved) || try > patience {
			return s.explain(op, err)
		}
	}
}
