package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tract-vcs/tract/objects"
)

// burst is how long readers may join a handle. Without an end, readers that
// overlap would keep the writers of other processes out.
const burst = 5 * time.Millisecond

// handle is the open file, locked for reading or, with db, for writing.
type handle struct {
	file   *os.File
	side   *sideLock // nil: there can be none
	db     *bbolt.DB
	opened time.Time
	broken bool // it is not to be used again

	now    *moment
	before *moment // what now was before the last commit
}

// moment is the store after one transaction. bbolt writes over the pages of a
// moment in the second transaction after it, so the writer lets those who look
// at the moment before leave first.
type moment struct {
	meta   meta
	staged *staged
	looks  int // who looks at it; the mutex of the store guards it
}

// staged are objects that the next transaction will put. They can be read by
// their id while it is prepared, so that one writer can stand on another.
type staged struct {
	mu      sync.RWMutex
	objects map[objects.ID][]byte
}

func newMoment(m meta) *moment {
	return &moment{meta: m, staged: &staged{objects: map[objects.ID][]byte{}}}
}

// view calls f with the store as it is now.
func (s *store) view(ctx context.Context, op string, f func(*look) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, m, err := s.enter(ctx, op)
	if err != nil {
		return err
	}
	defer s.leave(h, m)
	l := newLook(h.file, m.meta)
	l.staged = m.staged
	return s.explain(op, protect(func() error { return f(l) }))
}

// enter joins the handle that there is, or opens one.
func (s *store) enter(ctx context.Context, op string) (*handle, *moment, error) {
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		h, m, changed, err := s.join()
		switch {
		case h != nil || err != nil:
			return h, m, err
		case changed == nil:
			h, err := s.openRead(waiting)
			s.mu.Lock()
			s.opening = false
			if err == nil {
				s.open++
				h.now.looks++
				if !s.wanted && s.shared == nil {
					s.shared = h
				}
			}
			s.signal()
			s.mu.Unlock()
			if err != nil {
				return nil, nil, s.waited(ctx, op, err)
			}
			return h, h.now, nil
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return nil, nil, s.waited(ctx, op, waiting.Err())
		}
	}
}

// join joins the shared handle. Without one the caller opens the next when
// changed is nil, and waits for a change otherwise.
func (s *store) join() (h *handle, m *moment, changed chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.shared; {
	case h != nil && h.db != nil: // also while Close waits for the writer: f of Update may read
	case s.closed:
		return nil, nil, nil, objects.ErrClosed
	case s.wanted || s.opening:
		return nil, nil, s.changed, nil
	case h == nil || time.Since(h.opened) > burst:
		s.shared, s.opening = nil, true
		return nil, nil, nil, nil
	}
	s.shared.now.looks++
	return s.shared, s.shared.now, nil, nil
}

// leave ends a look. The last reader closes a handle; the writer closes its own.
func (s *store) leave(h *handle, m *moment) {
	s.mu.Lock()
	m.looks--
	last := m.looks == 0
	if last && h.db != nil {
		s.signal()
	}
	if last = last && h.db == nil; last && s.shared == h {
		s.shared = nil
	}
	s.mu.Unlock()
	if last {
		s.shut(h)
	}
}

// shut closes a handle at which nobody looks any more.
func (s *store) shut(h *handle) {
	switch {
	case h.db == nil:
		_ = h.file.Close()
	case h.broken:
		// bbolt may hold its own locks for ever. The file goes at once, and with
		// it the lock; the map goes if bbolt lets it.
		_ = h.file.Close()
		go func() { _ = protect(h.db.Close) }()
	default:
		_ = protect(h.db.Close)
	}
	h.side.release()
	s.mu.Lock()
	s.open--
	s.signal()
	s.mu.Unlock()
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
	h, err := s.openFile(os.O_RDONLY)
	if err == nil {
		if err = pollLock(ctx, h.file, false); err == nil {
			err = s.inspect(h)
		}
		if err != nil {
			_ = h.file.Close()
		}
	}
	if err != nil {
		side.release()
		return nil, err
	}
	h.side = side
	return h, nil
}

// openWrite opens the file for bbolt, once nobody else has it open.
func (s *store) openWrite(ctx context.Context) (*handle, error) {
	if err := s.find(); err != nil {
		return nil, err
	}
	side, err := s.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	h, err := s.openBolt()
	for errors.Is(err, errHeld) {
		if err = rest(ctx, maxPoll); err == nil {
			h, err = s.openBolt()
		}
	}
	if err != nil {
		side.release()
		return nil, err
	}
	h.side = side
	return h, nil
}

// errHeld says that a program has the file that knows nothing of the lock beside
// it, or cannot take it.
var errHeld = errors.New("another program holds it")

// openBolt checks the file, gives it to bbolt, which locks it, and sees that it
// was not written in between.
func (s *store) openBolt() (*handle, error) {
	h, err := s.openFile(os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err = s.inspect(h); err == nil {
		err = checkFreelist(h.file, h.now.meta)
	}
	if err == nil {
		err = protect(func() (err error) {
			h.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
				Timeout: time.Nanosecond, FreelistType: bbolt.FreelistArrayType, NoStatistics: true,
				OpenFile: func(string, int, os.FileMode) (*os.File, error) { return h.file, nil },
			})
			return err
		})
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, errHeld // bbolt has closed the file
	case err != nil:
		_ = h.file.Close()
		return nil, err
	}
	if now, err := h.readMeta(); err != nil || now != h.now.meta {
		_ = protect(h.db.Close)
		return nil, errHeld
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

func (s *store) openFile(flags int) (*handle, error) {
	f, err := os.OpenFile(s.path, flags|noFollow, 0)
	if err != nil {
		return nil, err
	}
	return &handle{file: f, opened: time.Now()}, nil
}

// readMeta reads the state of the file as it is now.
func (h *handle) readMeta() (meta, error) {
	info, err := h.file.Stat()
	if err != nil {
		return meta{}, err
	}
	return readMeta(h.file, info.Size())
}

// inspect refuses a file that is not safe, not whole or not known, before
// anything else of it is read.
func (s *store) inspect(h *handle) error {
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	if err := checkSafe(s.path, info, os.Geteuid()); err != nil {
		return err
	}
	m, err := h.readMeta()
	if err != nil {
		return err
	}
	h.now = newMoment(m)
	value, err := newLook(h.file, m).get(metaBucket, formatKey)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%w: no format in %q", errNoBucket, metaBucket)
	}
	version, err := decodeFormat(value)
	switch {
	case err != nil:
		return fmt.Errorf("format: %w", err)
	case version > formatVersion:
		return fmt.Errorf("open store %s: format %d is newer than %d, the newest known here: %w: upgrade tract",
			s.path, version, formatVersion, objects.ErrFormat)
	}
	return nil
}
