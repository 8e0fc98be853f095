package bolt

import (
	"context"
	"errors"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// Apply is objects.Writer.
func (s *store) Apply(ctx context.Context, b objects.Batch) error {
	return s.submit(ctx, func(_ context.Context, w *writer) error {
		return w.finish(w.plan(b, "", objects.ID{}))
	})
}

// Update is objects.Writer. f runs in the goroutine of its caller while this process has
// the lease, so that no other process can write in between. The functions of one ref run
// one at a time, in the order of the calls.
func (s *store) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	return s.submit(ctx, func(waiting context.Context, w *writer) error {
		unlock, err := w.refs.lock(waiting, ref)
		if err != nil {
			return s.waitError(ctx, "write", err)
		}
		return w.finish(w.planUpdate(ref, unlock, f))
	})
}

// submit calls f with a writer, and again if what f planned could not be written. waiting ends
// when ctx does, or when the call has waited too long.
func (s *store) submit(ctx context.Context, f func(waiting context.Context, w *writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for admitted := false; ; admitted = true {
		w, err := s.acquireWriter(waiting, admitted)
		if err != nil {
			return s.waitError(ctx, "write", err)
		}
		err = func() error {
			defer s.releaseWriter(w) // f may panic
			return f(waiting, w)
		}()
		if !errors.Is(err, errRetry) {
			return err
		}
	}
}

// planUpdate plans the batch that f makes of the tip of a ref, whose lock the caller has.
func (w *writer) planUpdate(ref string, unlock func(), f func(tip objects.ID) (objects.Batch, error)) (g *group, leads bool, err error) {
	defer unlock()
	for {
		tip, err := w.tip(ref)
		if err != nil {
			return nil, false, err
		}
		b, err := f(tip)
		if err != nil {
			return nil, false, err
		}
		g, leads, err := w.plan(b, ref, tip)
		if !errors.Is(err, errRefMoved) {
			return g, leads, err
		}
	}
}

// wait waits until a channel is closed.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refLocks has a lock for each ref that somebody updates.
type refLocks struct {
	mu    sync.Mutex
	locks map[string]*refLock
}

// refLock is the lock of a ref. A channel serves those who wait in their order.
type refLock struct {
	held  chan struct{} // full while somebody has the lock
	users int           // that have it or wait for it
}

// lock takes the lock of a ref.
func (l *refLocks) lock(ctx context.Context, ref string) (unlock func(), err error) {
	l.mu.Lock()
	one := l.locks[ref]
	if one == nil {
		one = &refLock{held: make(chan struct{}, 1)}
		l.locks[ref] = one
	}
	one.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.locks, ref)
		}
	}
	select {
	case one.held <- struct{}{}:
		return func() { <-one.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
