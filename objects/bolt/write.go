package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// A group is what goes into one transaction. It takes no more requests beyond
// these, so that neither memory nor the wait of the first one grows.
const (
	groupBytes = 16 << 20
	groupTime  = 20 * time.Millisecond
)

// request is one Apply or Update that waits for its turn.
type request struct {
	batch objects.Batch
	ref   string          // of an Update; its batch comes when it has seen the tip
	tip   chan objects.ID // to the one who asks
	reply chan reply      // back from it
	done  chan error      // the outcome
}

type reply struct {
	batch objects.Batch
	err   error
}

// errGone is the reply of a function that never came back.
var errGone = errors.New("the function given to Update did not return")

// Apply is objects.Writer.
func (s *store) Apply(ctx context.Context, b objects.Batch) error {
	return s.submit(ctx, &request{batch: b, done: make(chan error, 1)}, nil)
}

// Update is objects.Writer. f runs in the goroutine of its caller while the file
// is locked for writing, so that no other process can come in between.
func (s *store) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	r := &request{ref: ref, tip: make(chan objects.ID, 1), reply: make(chan reply, 1), done: make(chan error, 1)}
	return s.submit(ctx, r, func(tip objects.ID) {
		answer := reply{err: errGone}
		defer func() { r.reply <- answer }()
		answer.batch, answer.err = f(tip)
	})
}

// submit queues a request and waits for its outcome. Until somebody serves it,
// it can be taken back.
func (s *store) submit(ctx context.Context, r *request, answer func(tip objects.ID)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return objects.ErrClosed
	case s.readOnly:
		s.mu.Unlock()
		return fmt.Errorf("write store %s: %w", s.path, objects.ErrReadOnly)
	}
	if s.queue = append(s.queue, r); !s.writing {
		s.writing = true
		go s.write()
	}
	s.ask()
	s.mu.Unlock()
	patience := time.NewTimer(s.wait)
	defer patience.Stop()
	over := ctx.Done()
	for {
		select {
		case err := <-r.done:
			return err
		case tip := <-r.tip:
			answer(tip)
		case <-over:
			if s.takeBack(r) {
				return ctx.Err()
			}
			over = nil
		case <-patience.C:
			if s.takeBack(r) {
				return s.busy("write")
			}
		}
	}
}

// ask wakes up a writer that lingers.
func (s *store) ask() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// takeBack removes a request from the queue, unless it is being served.
func (s *store) takeBack(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.queue {
		if q == r {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			if len(s.queue) == 0 && s.cancel != nil {
				s.cancel()
			}
			return true
		}
	}
	return false
}

// take takes the next request from the queue; nil when there is none.
func (s *store) take() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	r := s.queue[0]
	s.queue = s.queue[1:]
	return r
}

// write serves the queue until it is empty. One goroutine does so at a time.
func (s *store) write() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.writing, s.wanted = false, false
			s.signal()
			s.mu.Unlock()
			cancel()
			return
		}
		s.cancel, s.wanted = cancel, true // new readers wait for the handle
		s.mu.Unlock()
		h, err := s.openWrite(ctx)
		if err != nil {
			s.refuse(ctx, s.explain("write", err))
		} else {
			s.serve(h)
		}
		cancel()
	}
}

// refuse answers all who wait. When they have all gone away that is why there
// is an error, and who has come since is not concerned.
func (s *store) refuse(ctx context.Context, err error) {
	s.mu.Lock()
	s.wanted = false
	s.signal()
	s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for r := s.take(); r != nil; r = s.take() {
		r.done <- err
	}
}

// serve writes one group after the other, until nobody waits here or somebody
// waits elsewhere.
func (s *store) serve(h *handle) {
	s.mu.Lock()
	s.shared = h
	s.open++
	s.signal()
	s.mu.Unlock()
	for more := true; more; {
		s.group(h)
		if !h.broken && h.journal.over.end > s.limit {
			_ = s.fold(h, nil) // if it cannot be now, a later one says so
		}
		runtime.Gosched() // who has just been served may come again
		more = s.linger(h)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed && !h.broken && h.journal.over.end > journalClose {
		_ = s.fold(h, nil) // the next process does it otherwise
	}
	if closed && !h.broken && h.journal.over.end == journalStart {
		_ = h.journal.file.Truncate(journalStart) // its frames do not count any more
	}
	s.mu.Lock()
	s.shared, s.wanted = nil, false
	s.signal()
	s.mu.Unlock()
	_ = s.await(context.Background(), func() bool { return h.now.looks == 0 && (h.before == nil || h.before.looks == 0) })
	s.shut(h)
}

// How long a writer keeps the store for the next request of this process, and how
// often it looks whether somebody wants it elsewhere.
const (
	hold     = 4 * time.Millisecond
	holdLook = 500 * time.Microsecond
)

// wanted tells whether somebody waits for the lock. One group after another need
// not ask each time.
func (h *handle) wanted() bool {
	if time.Since(h.asked) < holdLook/2 {
		return false
	}
	h.asked = time.Now()
	return h.side.wanted()
}

// linger waits a little for the next request. It tells whether there is one and
// the store is not wanted elsewhere.
func (s *store) linger(h *handle) bool {
	tick := time.NewTicker(holdLook)
	defer tick.Stop()
	for end := time.Now().Add(hold); ; {
		s.mu.Lock()
		more, closed := len(s.queue) > 0, s.closed
		s.mu.Unlock()
		if h.broken || h.wanted() {
			return false
		}
		if more {
			return true
		}
		if closed || time.Now().After(end) {
			return false
		}
		select {
		case <-s.asked:
		case <-tick.C:
		}
	}
}

// group writes what waits in one transaction. A request that fails by itself leaves
// no trace in it.
func (s *store) group(h *handle) {
	p := newPlan(h)
	var served []*request
	refused := map[*request]error{}
	for start := time.Now(); p.hauled == nil && p.size < groupBytes && time.Since(start) < groupTime; {
		r := s.take()
		if r == nil {
			break
		}
		wrote, err := s.plan(p, r)
		switch {
		case err == nil && wrote:
			served = append(served, r)
		case len(served) == 0:
			r.done <- err
		default: // perhaps because of one before it, which nobody can see yet
			refused[r] = err
		}
	}
	if len(served) == 0 {
		return
	}
	err := s.commit(h, p)
	for _, r := range served {
		r.done <- err
	}
	for r, why := range refused {
		r.done <- why
	}
}

// plan adds a request to a plan, once it has seen the tip if it asks for it.
func (s *store) plan(p *plan, r *request) (wrote bool, err error) {
	if r.tip != nil {
		var at objects.Ref
		err := protect(func() (err error) { at, err = p.ref(r.ref); return err })
		if err != nil {
			return false, s.explain("read", err)
		}
		r.tip <- at.Target
		answer := <-r.reply
		if answer.err != nil {
			return false, answer.err
		}
		r.batch = answer.batch
	}
	err = protect(func() error {
		if len(p.order) == 0 && bulky(r.batch) {
			return p.haul(r.batch)
		}
		return p.add(r.batch)
	})
	return len(r.batch.Put) > 0 || len(r.batch.Refs) > 0, s.explain("read", err)
}
