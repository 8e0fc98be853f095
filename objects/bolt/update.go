package bolt

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Apply is objects.Writer.
func (s *store) Apply(ctx context.Context, b objects.Batch) error {
	return s.submit(ctx, func(w *writer, _ waitLimit) error {
		return w.finish(w.plan(b, "", objects.ID{}))
	})
}

// Update is objects.Writer. f runs in the goroutine of its caller while this process has
// the lease, so that no other process can write in between. The functions of one ref run
// one at a time, in the order of the calls.
func (s *store) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	return s.submit(ctx, func(w *writer, limit waitLimit) error {
		return w.finish(w.update(ref, limit, f))
	})
}

// submit calls f with a writer, and again if what f planned could not be written.
func (s *store) submit(ctx context.Context, f func(*writer, waitLimit) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := waitLimit{ctx: ctx, end: time.Now().Add(s.wait)}
	for admitted := false; ; admitted = true {
		w, err := s.acquireWriter(limit, admitted)
		if err != nil {
			return err
		}
		err = func() error {
			defer s.releaseWriter(w) // f may panic
			return f(w, limit)
		}()
		if !errors.Is(err, errRetry) {
			return err
		}
	}
}

// update plans the batch that f makes of the tip of a ref.
func (w *writer) update(ref string, limit waitLimit, f func(tip objects.ID) (objects.Batch, error)) (*group, bool, error) {
	if err := w.queues.lock(ref, limit); err != nil {
		return nil, false, w.store.explainWait("write", err)
	}
	defer w.queues.unlock(ref)
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

// waitLimit is how long a call may wait.
type waitLimit struct {
	ctx context.Context //nolint:containedctx // it is one call
	end time.Time
}

var errWaitTimeout = errors.New("waited too long")

// explainWait returns the error of a wait that has ended.
func (s *store) explainWait(op string, err error) error {
	if errors.Is(err, errWaitTimeout) {
		return s.busy(op)
	}
	return err
}

// wait waits until a channel is closed.
func (l waitLimit) wait(done <-chan struct{}) error {
	timer := time.NewTimer(time.Until(l.end))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	case <-timer.C:
		return errWaitTimeout
	}
}

// refQueues are locks of refs, given in the order in which they are asked for.
type refQueues struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // by locked ref; a waiter's channel is closed when it has the lock
}

func (q *refQueues) lock(ref string, limit waitLimit) error {
	q.mu.Lock()
	line, locked := q.waiting[ref]
	if !locked {
		q.waiting[ref] = nil
		q.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	q.waiting[ref] = append(line, mine)
	q.mu.Unlock()
	err := limit.wait(mine)
	if err == nil {
		return nil
	}
	q.mu.Lock()
	i := slices.Index(q.waiting[ref], mine)
	if i >= 0 {
		q.waiting[ref] = slices.Delete(q.waiting[ref], i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // it got the lock at the same moment
		q.unlock(ref)
	}
	return err
}

func (q *refQueues) unlock(ref string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.waiting[ref]
	if len(line) == 0 {
		delete(q.waiting, ref)
		return
	}
	close(line[0])
	q.waiting[ref] = line[1:]
}
