package bolt

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// How long a writer keeps the store for the next request of this process, and how
// often it looks whether somebody wants it elsewhere.
const (
	hold     = 4 * time.Millisecond
	holdLook = 500 * time.Microsecond
)

// arrival is the wait for a writer. All who wait for one wait together.
type arrival struct {
	waiting int
	cancel  func()        // ends the wait of the keeper; nil: it has not begun
	done    chan struct{} // closed when there is a writer or an error
	err     error
}

// enterWriter gives the writer, which stays until leaveWriter. Until there is one the
// request can be taken back. One that is late was let in before the store was closed.
func (s *store) enterWriter(p allowance, late bool) (*writer, error) {
	for ; ; late = true {
		s.mu.Lock()
		switch {
		case s.closed && !late:
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
		a := s.coming
		if a == nil {
			a = &arrival{done: make(chan struct{})}
			s.coming = a
		}
		if a.waiting++; !s.writing {
			s.writing = true
			go s.keep()
		}
		s.mu.Unlock()
		if err := p.wait(a.done); err != nil {
			s.giveUp(a)
			return nil, s.late("write", err)
		}
		if a.err != nil {
			return nil, a.err
		}
	}
}

// giveUp takes one back who waits. When nobody is left the keeper need not wait either,
// and who comes then waits anew.
func (s *store) giveUp(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.waiting--; a.waiting > 0 || s.coming != a {
		return
	}
	if s.coming = nil; a.cancel != nil {
		a.cancel()
	}
}

func (s *store) leaveWriter(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.served++
	if w.users--; w.users == 0 && s.writer != w {
		s.signal()
	}
}

// keep gets a writer for those who wait for one, until nobody does. One goroutine does
// so at a time.
func (s *store) keep() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		a := s.coming
		if a == nil {
			s.writing, s.wanted = false, false
			s.signal()
			s.mu.Unlock()
			cancel()
			return
		}
		a.cancel, s.wanted = cancel, true // new readers wait for the handle
		s.mu.Unlock()
		h, err := s.openWrite(ctx)
		if err == nil && !s.tidied {
			removeLeftovers(s.path, false)
			s.tidied = s.resumePurge(h) == nil // a later writer tries again
		}
		if w := s.arrive(a, h, s.explain("write", err)); w != nil {
			s.serve(w)
		}
		cancel()
	}
}

// arrive lets those in who wait, or tells them why they wait in vain. When they have all
// gone away that is why there is an error, and who has come since is not concerned.
func (s *store) arrive(a *arrival, h *handle, err error) (w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	if err != nil {
		s.wanted = false
		if a.err = err; s.coming == a {
			s.coming = nil
		}
		close(a.done)
		return nil
	}
	w = newWriter(s, h)
	s.writer, s.shared = w, h
	s.open++
	if s.coming != nil {
		a = s.coming
	}
	s.coming = nil
	close(a.done)
	return w
}

// wake wakes up the keeper.
func (w *writer) wake() {
	select {
	case w.call <- struct{}{}:
	default:
	}
}

// serve keeps a writer until nobody wants it here or somebody wants the store
// elsewhere. Who waited for it has had it by then.
func (s *store) serve(w *writer) {
	tick := time.NewTicker(holdLook)
	defer tick.Stop()
	for seen, end := 0, time.Now().Add(hold); ; {
		select {
		case <-w.call:
		case <-tick.C:
		}
		asked, broken := s.past(w)
		s.mu.Lock()
		served, users, closed, stopped := w.served, w.users, s.closed, s.writer != w
		s.mu.Unlock()
		if served != seen || users > 0 {
			seen, end = served, time.Now().Add(hold)
		}
		if stopped || broken || asked && served > 0 || closed && users == 0 || time.Now().After(end) {
			break
		}
	}
	s.end(w)
}

// past tells whether somebody waits elsewhere, or the handle is of no use any more. While
// somebody writes it says nothing: he looks himself.
func (s *store) past(w *writer) (asked, broken bool) {
	if !w.disk.TryLock() {
		return false, false
	}
	defer w.disk.Unlock()
	s.tend(w)
	return w.h.side.wanted(), w.h.broken.Load()
}

// tend checkpoints the journal when it is as long as it may be. disk is held.
func (s *store) tend(w *writer) {
	if h := w.h; !h.broken.Load() && h.journal.Length() > s.limit {
		_ = s.checkpoint(h, nil) // if it cannot be now, a later one says so
	}
}

// stop lets nobody in any more, and no group begin: whoever comes waits for the next
// writer.
func (w *writer) stop() {
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.store.mu.Lock()
	if w.store.writer == w {
		w.store.writer = nil
	}
	w.store.mu.Unlock()
}

// end waits until all that was begun is written, and closes the handle.
func (s *store) end(w *writer) {
	h := w.h
	w.stop()
	_ = s.await(context.Background(), func() bool { return w.users == 0 })
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed && !h.broken.Load() && h.journal.Length() > journalClose {
		_ = s.checkpoint(h, nil) // the next process does it otherwise
	}
	if closed && !h.broken.Load() {
		h.journal.Discard()
	}
	s.mu.Lock()
	s.shared, s.wanted = nil, false
	s.signal()
	s.mu.Unlock()
	_ = s.await(context.Background(), func() bool { return h.now.looks == 0 && (h.before == nil || h.before.looks == 0) })
	s.shut(h)
}
