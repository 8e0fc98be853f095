package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// burst is how long readers may join a handle. Without an end, readers that
// overlap would keep the writers of other processes out.
const burst = 5 * time.Millisecond

// handle is the open file with its journal, locked for reading or for writing.
type handle struct {
	file    *os.File
	number  uint64      // which of the files that had the name it is
	info    os.FileInfo // of the file, when it was opened
	side    *sideLock   // nil: there can be none
	journal *journal.Log
	mem     *memtable.Table
	writer  bool
	opened  time.Time
	broken  atomic.Bool // it is not to be used again
	idle    bool        // nobody looks at it, and it is kept; the mutex of the store guards it
	timed   bool        // a timer will let go of it
	polite  time.Time   // when a reader asked last whether somebody waits

	planner *writer // whose look goes on when the file does; nil: nobody plans

	now    *moment
	before *moment // what now was before the last checkpoint
	mark   memtable.Mark
	staged []*staged
	bodies *opened
}

// moment is the file after one transaction. bbolt writes over the pages of a
// moment in the second transaction after it, so the writer lets those who look
// at the moment before leave first.
type moment struct {
	meta  page.Meta
	looks int // who looks at it; the mutex of the store guards it
}

// look is the store as the handle has it now. The mutex of the store is held, or
// nobody else has the handle.
func (h *handle) look() *look {
	l := newLook(h.file, h.now.meta)
	l.number = h.number
	l.mem, l.mark, l.staged, l.bodies = h.mem, h.mark, h.staged, h.bodies
	return l
}

// view calls f with the store as it is now.
func (s *store) view(ctx context.Context, op string, f func(*look) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, m, l, err := s.enter(ctx, op)
	if err != nil {
		return err
	}
	defer s.leave(h, m)
	return s.explain(op, protect(func() error { return f(l) }))
}

// enter joins the handle that there is, or opens one.
func (s *store) enter(ctx context.Context, op string) (*handle, *moment, *look, error) {
	if h, m, l, _, err := s.join(false); h != nil || err != nil {
		return h, m, l, err
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		h, m, l, changed, err := s.join(true)
		switch {
		case h != nil || err != nil:
			return h, m, l, err
		case changed == nil:
			h, err := s.openRead(waiting)
			s.mu.Lock()
			s.opening = false
			if err == nil {
				s.open++
				h.now.looks++
				l = h.look()
				if !s.wanted && s.shared == nil {
					s.shared = h
				}
			}
			s.signal()
			s.mu.Unlock()
			if err != nil {
				return nil, nil, nil, s.waited(ctx, op, err)
			}
			return h, h.now, l, nil
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return nil, nil, nil, s.waited(ctx, op, waiting.Err())
		}
	}
}

// join joins the shared handle. Without one the caller opens the next when
// changed is nil and it said that it will, and waits for a change otherwise.
func (s *store) join(open bool) (h *handle, m *moment, l *look, changed chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.shared; {
	case h != nil && h.writer: // also while Close waits for the writer: f of Update may read
	case s.closed:
		return nil, nil, nil, nil, objects.ErrClosed
	case s.wanted || s.opening:
		return nil, nil, nil, s.changed, nil
	case h == nil || time.Since(h.opened) > burst:
		if open {
			s.shared, s.opening = nil, true
		}
		return nil, nil, nil, nil, nil
	}
	s.shared.now.looks++
	s.shared.idle = false
	return s.shared, s.shared.now, s.shared.look(), nil, nil
}

// leave ends a look. The last reader closes a handle; the writer closes its own.
func (s *store) leave(h *handle, m *moment) {
	s.mu.Lock()
	m.looks--
	last := m.looks == 0
	if last && h.writer {
		s.signal()
	}
	if last = last && !h.writer; last && s.shared == h {
		if last = !s.idles(h); last {
			s.shared = nil
		}
	}
	s.mu.Unlock()
	if last {
		s.shut(h)
	}
}

// shut closes a handle at which nobody looks any more.
func (s *store) shut(h *handle) {
	h.close()
	h.side.release()
	s.mu.Lock()
	if h.broken.Load() {
		s.mem = nil
	}
	s.open--
	s.signal()
	s.mu.Unlock()
}

func (h *handle) close() {
	_ = h.file.Close()
	if h.journal != nil {
		_ = h.journal.File.Close()
	}
}

// waited explains an error of waiting for a handle that ends no later than ctx.
func (s *store) waited(ctx context.Context, op string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.busy(op)
	}
	return s.explain(op, err)
}

func (s *store) busy(op string) error {
	return fmt.Errorf("%s store %s: others have held it for %v: %w", op, s.path, s.wait, objects.ErrBusy)
}

func (s *store) openRead(ctx context.Context) (*handle, error) {
	if err := s.find(); err != nil {
		return nil, err
	}
	side, err := s.lock(ctx, false)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		side, err = nil, nil // the lock of the file itself must do
	}
	if err != nil {
		return nil, err
	}
	h, err := s.openBoth(ctx, side, os.O_RDONLY)
	if err != nil {
		side.release()
		return nil, err
	}
	return h, nil
}

// openWrite opens the file for writing, once nobody else has it open.
func (s *store) openWrite(ctx context.Context) (*handle, error) {
	if err := s.find(); err != nil {
		return nil, err
	}
	side, err := s.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	h, err := s.openBoth(ctx, side, os.O_RDWR)
	if err != nil {
		side.release()
		return nil, err
	}
	h.writer = true
	if err := h.recoverTail(); err != nil {
		h.close()
		side.release()
		return nil, err
	}
	return h, nil
}

// openBoth opens the file, which nobody changes then, and its journal.
func (s *store) openBoth(ctx context.Context, side *sideLock, flags int) (*handle, error) {
	f, err := s.policy.Open(s.path, flags, 0)
	if err != nil {
		return nil, err
	}
	h := &handle{file: f, side: side, opened: time.Now(), bodies: &s.bodies}
	if err = pollLock(ctx, h.file, false); err == nil {
		var bound journal.Binding
		if bound, err = s.inspect(h); err == nil {
			err = s.openJournal(h, bound, flags)
		}
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// find looks for the file before it is locked, so that no lock files are left
// where there is no store, and before it is opened, which may wait for ever.
func (s *store) find() error {
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

// readMeta reads the state of the file as it is now.
func (h *handle) readMeta() (page.Meta, error) {
	info, err := h.file.Stat()
	if err != nil {
		return page.Meta{}, err
	}
	return page.ReadMeta(h.file, info.Size())
}

// inspect refuses a file that is not safe, not whole or not known, before
// anything else of it is read.
func (s *store) inspect(h *handle) (bound journal.Binding, err error) {
	if h.info, err = h.file.Stat(); err != nil {
		return bound, err
	}
	m, err := h.readMeta()
	if errors.Is(err, objects.ErrFormat) {
		return bound, fmt.Errorf("open store %s: %w", s.path, err)
	}
	if err != nil {
		return bound, err
	}
	h.now = &moment{meta: m}
	l := newLook(h.file, m)
	version, err := l.version()
	if err == nil {
		err = s.knows(version)
	}
	if err != nil {
		return bound, err
	}
	value, err := l.get(metaBucket, journalKey)
	if err == nil {
		bound, err = decodeBinding(value)
	}
	if err != nil {
		return bound, fmt.Errorf("journal: %w", err)
	}
	h.number = s.noteFile(h.info, bound.File)
	return bound, nil
}

// knows refuses a format that this package does not know.
func (s *store) knows(version uint64) error {
	switch {
	case version > formatNewest:
		return fmt.Errorf("open store %s: format %d is newer than %d, the newest known here: %w: upgrade tract",
			s.path, version, formatNewest, objects.ErrFormat)
	case version < formatFirst:
		return fmt.Errorf("open store %s: format %d was never released: %w", s.path, version, objects.ErrFormat)
	}
	return nil
}
