package bolt

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// The writer lease. Opening a store for writing takes the ticket lock, which excludes other
// processes. One goroutine at a time (leaseLoop) opens the handle for the calls that wait for
// it, keeps it for leaseIdle after the last call, because the next one often follows at once,
// and closes it. If another process waits for the lock, no group is opened after the present
// one, the handle is closed when no call uses it, and the next call waits for a new lease.

const (
	leaseIdle = 4 * time.Millisecond
	leasePoll = 500 * time.Microsecond // how often an idle lease looks for other processes
)

// leaseRequest is the wait for a writer. All who wait for one wait together.
type leaseRequest struct {
	waiters int
	cancel  func()        // ends the wait for the lock; nil: it has not begun
	done    chan struct{} // closed when there is a writer or an error
	writer  *writer       // of which each of those who wait is a user
	err     error
}

// acquireWriter returns the writer, which stays until releaseWriter. A call that was
// admitted before the store was closed may still write.
func (s *store) acquireWriter(ctx context.Context, evenIfClosed bool) (*writer, error) {
	s.mu.Lock()
	switch {
	case s.closed && !evenIfClosed:
		s.mu.Unlock()
		return nil, objects.ErrClosed
	case s.readOnly:
		s.mu.Unlock()
		return nil, fmt.Errorf("write store %s: %w", s.path, objects.ErrReadOnly)
	case s.writer != nil:
		w := s.writer
		w.users++
		s.mu.Unlock()
		return w, nil
	}
	r := s.request
	if r == nil {
		r = &leaseRequest{done: make(chan struct{})}
		s.request = r
	}
	if r.waiters++; !s.leasing {
		s.leasing = true
		go s.leaseLoop()
	}
	s.mu.Unlock()
	if err := wait(ctx, r.done); err != nil {
		s.abandon(r)
		return nil, err
	}
	return r.writer, r.err
}

func (s *store) releaseWriter(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.users--
	w.lastUse = time.Now()
	if w.users == 0 && (s.closed || s.writer != w) {
		s.signal()
	}
}

// abandon withdraws one call from a request. When nobody waits any more the wait for the
// lock ends too, and whoever comes then makes a request of its own.
func (s *store) abandon(r *leaseRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.waiters--; r.writer != nil { // granted at the same moment
		r.writer.users--
		s.signal()
	}
	if r.waiters == 0 && s.request == r {
		s.request = nil
		if r.cancel != nil {
			r.cancel()
		}
	}
}

// leaseLoop gets a writer for those who wait for one, until nobody does.
func (s *store) leaseLoop() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		r := s.request
		if r == nil {
			s.leasing, s.writerWaits = false, false
			s.signal()
			s.mu.Unlock()
			cancel()
			return
		}
		r.cancel, s.writerWaits = cancel, true // new readers wait for the handle
		reader := s.shared
		s.mu.Unlock()
		if reader != nil {
			s.closeIdle(reader)
		}
		h, err := s.lockAndOpen(ctx, true)
		if err == nil && !s.leftoversRemoved {
			removeLeftovers(s.path, false)
			bad := s.resumePurge(h)
			s.leftoversRemoved = bad == nil // else a later writer tries again
			if h.broken.Load() {
				h.closeFiles()
				h.lock.release()
				err = bad
			}
		}
		if w := s.grant(r, h, s.explain("write", err)); w != nil {
			s.awaitLeaseEnd(w)
			s.endLease(w)
		}
		cancel()
	}
}

// grant lets those in who wait, or gives them the error. If all of them have gone, that is
// why there is an error, and it does not concern a request made since.
func (s *store) grant(r *leaseRequest, h *handle, err error) (w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	if err != nil {
		s.writerWaits, r.err = false, err
		if s.request == r {
			s.request = nil
		}
		close(r.done)
		return nil
	}
	w = newWriter(s, h)
	s.writer, s.shared, s.wrote = w, h, true
	s.openHandles++
	if s.request != nil {
		r = s.request
	}
	s.request = nil
	r.writer, w.users = w, r.waiters
	close(r.done)
	return w
}

// checkpointIfFull makes a checkpoint if the journal has its full length. commit is held.
func (s *store) checkpointIfFull(w *writer) {
	if h := w.h; !h.broken.Load() && h.journal.Length() > s.checkpointLength {
		_ = s.checkpoint(h, h.mark) // if it fails, a later one returns the error
	}
}

// stopAcceptingBatches makes the writer refuse new calls and new groups. The planned groups are still
// written, and a group that has a leader accepts batches until it is written.
func (w *writer) stopAcceptingBatches() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.store.mu.Lock()
	if w.store.writer == w {
		w.store.writer = nil
	}
	w.store.mu.Unlock()
}

// stopIfBrokenOrContended calls stopAcceptingBatches if the writer is broken, or if another process
// waits for its lock. commit is held.
func (w *writer) stopIfBrokenOrContended() {
	if w.h.broken.Load() || w.h.lock.contended() {
		w.stopAcceptingBatches()
	}
}

// awaitLeaseEnd waits until no call uses a writer, and none can any more: it was closed, the store
// is closed, another process waits, or the last call left it some time ago.
func (s *store) awaitLeaseEnd(w *writer) {
	for contended := false; ; {
		poll, cancel := context.WithTimeout(context.Background(), leasePoll)
		err := s.await(poll, func() bool {
			if contended || w.users == 0 && (s.closed || time.Since(w.lastUse) >= s.leaseIdle) {
				s.writer = nil // its present users finish with it
			}
			return w.users == 0 && s.writer == nil
		})
		cancel()
		if err == nil {
			return
		}
		w.commit.Lock()
		contended = w.h.lock.contended()
		w.commit.Unlock()
	}
}

// endLease closes the handle of a writer that no call uses any more.
func (s *store) endLease(w *writer) {
	h := w.h
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed && !h.broken.Load() {
		if h.journal.Length() > journalClose {
			_ = s.checkpoint(h, h.mark) // otherwise the frames stay for a later checkpoint
		}
		if !h.broken.Load() {
			h.journal.Discard()
		}
	}
	s.mu.Lock()
	s.shared, s.writerWaits = nil, false
	s.signal()
	s.mu.Unlock()
	_ = s.await(context.Background(), func() bool {
		return h.version.readers == 0 && (h.previousVersion == nil || h.previousVersion.readers == 0)
	})
	s.closeHandle(h)
}
