package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// No file stays open while nobody uses the store. Readers of one process that overlap share
// one handle, for shareTime at most, since otherwise they would keep the writers of other
// processes out for ever. While this process has the writer lease, readers use the handle of
// the writer.
//
// The last reader leaves the handle open for idleTime, since a walk or a compile reads hundreds of
// times in a row, and opening and locking takes longer than most reads. A writer of this process
// closes an idle handle at once; one of another process waits for shareTime at most.
const (
	shareTime = 5 * time.Millisecond
	idleTime  = time.Millisecond
)

// handle is the open file with its journal, locked for reading or for writing.
type handle struct {
	file       *os.File
	fileInfo   os.FileInfo // of the file, when it was opened
	fileNumber uint64      // which of the files that had the name it is
	lock       *ticketLock // nil: there can be none
	journal    *journal.Log
	mem        *memtable.Table
	bodies     *bodyCache
	writer     bool
	broken     atomic.Bool // it must not be used again

	// The mutex of the store guards these.
	version         *fileVersion
	previousVersion *fileVersion  // the one before the last checkpoint
	mark            memtable.Mark // of mem, up to what is durable
	opened          time.Time
	idle            bool // nobody reads, and a timer will close it

	planner *writer // plans on this handle; nil: nobody does
}

// fileVersion is the file after one transaction. bbolt overwrites the pages of a version in the
// second transaction after it, so a checkpoint waits for the readers of the version before the
// present one.
type fileVersion struct {
	meta page.Meta

	// The mutex of the store guards these.
	readers      int
	idleSnapshot *snapshot // of a reader that has ended, with the pages that it has read; nil: none
}

// snapshot returns a snapshot of the present state. The mutex of the store is held, or nobody
// else has the handle.
func (h *handle) snapshot() *snapshot {
	l := h.version.idleSnapshot
	if h.version.idleSnapshot = nil; l == nil {
		l = newSnapshot(h.file, h.version.meta)
	}
	l.fileNumber, l.advice = h.fileNumber, nil
	l.mem, l.mark, l.bodies = h.mem, h.mark, h.bodies
	return l
}

// readTx is one call that reads from a handle.
type readTx struct {
	handle   *handle
	version  *fileVersion
	snapshot *snapshot
}

// view calls f with a snapshot of the store.
func (s *store) view(ctx context.Context, op string, f func(*snapshot) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := s.acquireReader(ctx, op)
	if err != nil {
		return err
	}
	defer s.releaseReader(r)
	return s.explain(op, protect(func() error { return f(r.snapshot) }))
}

// acquireReader joins the shared handle, or opens one.
func (s *store) acquireReader(ctx context.Context, op string) (*readTx, error) {
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		r, changed, err := s.joinSharedOrClaimOpening()
		switch {
		case r != nil || err != nil:
			return r, err
		case changed == nil:
			h, err := s.lockAndOpen(waiting, false)
			if r = s.shareHandle(h, err); r == nil {
				return nil, s.waitError(ctx, op, err)
			}
			return r, nil
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return nil, s.waitError(ctx, op, waiting.Err())
		}
	}
}

// joinSharedOrClaimOpening joins the shared handle. If there is none, the caller waits until changed is
// closed; if changed is nil as well, the caller has to open one and share it.
func (s *store) joinSharedOrClaimOpening() (r *readTx, changed chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.shared; {
	case h != nil && h.writer: // also while Close waits for the writer: f of Update may read
	case s.closed:
		return nil, nil, objects.ErrClosed
	case s.writerWaits || s.opening:
		return nil, s.changed, nil
	case h == nil || time.Since(h.opened) > shareTime:
		s.shared, s.opening = nil, true
		return nil, nil, nil
	}
	return s.newReadTx(s.shared), nil, nil
}

// newReadTx counts one more reader of a handle. mu is held.
func (s *store) newReadTx(h *handle) *readTx {
	h.idle = false
	h.version.readers++
	return &readTx{handle: h, version: h.version, snapshot: h.snapshot()}
}

// shareHandle lets other readers join a handle that the caller has opened, if there is no error.
func (s *store) shareHandle(h *handle, err error) (r *readTx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	s.opening = false
	if err != nil {
		return nil
	}
	s.openHandles++
	if !s.writerWaits && s.shared == nil {
		s.shared = h
	}
	return s.newReadTx(h)
}

// releaseReader ends the use of a handle. If it was the last one, the handle becomes idle or is
// closed; a writer closes its own.
func (s *store) releaseReader(r *readTx) {
	h := r.handle
	s.mu.Lock()
	r.version.readers--
	r.version.idleSnapshot = r.snapshot
	last := r.version.readers == 0
	if last && h.writer && (r.version != h.version || s.shared != h) { // else no checkpoint and no end of a lease waits for it
		s.signal()
	}
	last = last && !h.writer
	if last && s.shared == h {
		if h.idle = !s.closed && !s.writerWaits && time.Since(h.opened) < shareTime; h.idle { // the next reader may join it
			last = false
			time.AfterFunc(idleTime, func() { s.closeIdle(h) })
		} else {
			s.shared = nil
		}
	}
	s.mu.Unlock()
	if last {
		s.closeHandle(h)
	}
}

// closeIdle closes the handle if nobody has used it since it became idle.
func (s *store) closeIdle(h *handle) {
	s.mu.Lock()
	idle := h.idle
	h.idle = false
	if idle && s.shared == h {
		s.shared = nil
	}
	s.mu.Unlock()
	if idle {
		s.closeHandle(h)
	}
}

// closeHandle closes a handle that nobody uses any more.
func (s *store) closeHandle(h *handle) {
	h.closeFiles()
	h.lock.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.writer && !h.broken.Load() {
		s.mem, s.position = h.mem, h.journal.Position
	}
	s.openHandles--
	s.signal()
}

func (h *handle) closeFiles() {
	_ = h.file.Close()
	if h.journal != nil {
		_ = h.journal.File.Close()
	}
}

// waitError returns the error of a wait for a handle that ends no later than ctx.
func (s *store) waitError(ctx context.Context, op string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.busyError(op)
	}
	return s.explain(op, err)
}

func (s *store) busyError(op string) error {
	return fmt.Errorf("%s store %s: others have held it for %v: %w", op, s.path, s.wait, objects.ErrBusy)
}

// lockAndOpen locks the store and opens it for reading, or for writing once nobody else has it open.
func (s *store) lockAndOpen(ctx context.Context, writer bool) (*handle, error) {
	if err := s.checkPath(); err != nil {
		return nil, err
	}
	flags, acquire := os.O_RDONLY, s.lockShared
	if writer {
		flags, acquire = os.O_RDWR, s.lockExclusive
	}
	lock, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	h, err := s.openFiles(ctx, lock, flags)
	if err != nil {
		lock.release()
		return nil, err
	}
	h.writer = writer
	return h, nil
}

// openFiles opens the file, which nobody changes meanwhile, and its journal.
func (s *store) openFiles(ctx context.Context, lock *ticketLock, flags int) (*handle, error) {
	f, err := s.policy.Open(s.path, flags, 0)
	if err != nil {
		return nil, err
	}
	h := &handle{file: f, lock: lock, opened: time.Now(), bodies: &s.bodies}
	if err = pollLock(ctx, h.file, false); err == nil {
		var bound journal.Binding
		if bound, err = s.readMetaInto(h); err == nil {
			err = s.openJournal(h, bound, flags)
		}
	}
	if err == nil && flags == os.O_RDWR {
		err = h.syncUnacknowledgedFrames()
	}
	if err != nil {
		h.closeFiles()
		return nil, err
	}
	return h, nil
}

// checkPath checks the path before the store is locked, so that no lock files are left where
// there is no store, and before it is opened, which could block on a named pipe.
func (s *store) checkPath() error {
	info, err := os.Lstat(s.path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("open store %s: it is a symbolic link: %w: name what it leads to", s.path, objects.ErrUnsafe)
	case !info.Mode().IsRegular():
		return fmt.Errorf("open store %s: it is no regular file: %w", s.path, objects.ErrFormat)
	}
	return nil
}

// readMeta reads the state of a file as it is now.
func readMeta(f *os.File) (page.Meta, error) {
	info, err := f.Stat()
	if err != nil {
		return page.Meta{}, err
	}
	return page.ReadMeta(f, info.Size())
}

// readMetaInto sets what the handle knows of the file from its meta page and meta bucket. It refuses a file
// that is damaged or has an unknown format, before anything else of it is read.
func (s *store) readMetaInto(h *handle) (bound journal.Binding, err error) {
	if h.fileInfo, err = h.file.Stat(); err != nil {
		return bound, err
	}
	m, err := readMeta(h.file)
	if errors.Is(err, objects.ErrFormat) {
		return bound, fmt.Errorf("open store %s: %w", s.path, err)
	}
	if err != nil {
		return bound, err
	}
	h.version = &fileVersion{meta: m}
	l := newSnapshot(h.file, m)
	version, err := l.version()
	if err == nil {
		err = s.checkFormat(version)
	}
	if err != nil {
		return bound, err
	}
	if bound, err = l.binding(); err != nil {
		return bound, fmt.Errorf("journal: %w", err)
	}
	h.fileNumber = s.updateFileNumber(h.fileInfo, bound.File)
	return bound, nil
}

// checkFormat refuses a format that this package does not know.
func (s *store) checkFormat(version uint64) error {
	switch {
	case version > formatVersion:
		return fmt.Errorf("open store %s: format %d is newer than %d, the newest known here: %w: upgrade tract",
			s.path, version, formatVersion, objects.ErrFormat)
	case version < formatVersion:
		return fmt.Errorf("open store %s: format %d was never released: %w", s.path, version, objects.ErrFormat)
	}
	return nil
}
